#include "sim/cost/deterministic.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

bool is_attention_backward(const workloads::Operator& op) {
  return op.cls == workloads::OperatorClass::attention && op.pass == workloads::Pass::backward_input;
}

// Keys of a block of FlashAttention-2's backward (csrc/flash_attn/src/flash_bwd_launch_template.h): 128 up to heads of 128, 64 above.
// Where a block may have less shared memory than these take (144 KiB: A10, A40, L4, L40S, GeForce), half of that in kernels for heads of
// 128 and of 256.
double keys_of_block(const Gpu& gpu, std::int64_t head_dim) {
  constexpr double needed_bytes = 144 * 1024;
  const bool halves = gpu.shared_memory_bytes < needed_bytes;
  if (head_dim <= 96) return 128;
  if (head_dim <= 128) return halves ? 64 : 128;
  return head_dim > 192 && halves ? 32 : 64;
}

double sequences(const workloads::Operator& op) { return static_cast<double>(op.batch * op.heads); }

// As many as it takes to have one on every multiprocessor (run_flash_bwd_seqk_parallel in the same file); each walks over every so many'th
// block of keys.
double walkers(const Gpu& gpu, const workloads::Operator& op) { return std::ceil(gpu.multiprocessors / sequences(op)); }

// Blocks of keys that one multiprocessor does after another, whose shared memory has room for one walker, with one walker for each of them
// over those that each walks over. Heads that do not divide the multiprocessors leave most of those idle while the last walk.
// Keys outside a window are walked over too; gathered over context parallelism there are more of them than queries.
double second_generation_share(const Gpu& gpu, const workloads::Operator& op) {
  const double blocks = std::ceil(static_cast<double>(std::max(op.query, op.key)) / keys_of_block(gpu, op.head_dim));
  const double walking = std::min(walkers(gpu, op), blocks);
  const double turns = std::ceil(sequences(op) * blocks / gpu.multiprocessors);
  return std::min(1.0, turns / (std::ceil(sequences(op) * walking / gpu.multiprocessors) * std::ceil(blocks / walking)));
}

// A gradient of queries in fp32 for each walker but the one that there is anyway: zeroed (flash_api.cpp, mha_bwd), and read to be added up.
double walkers_bytes(const Gpu& gpu, const workloads::Operator& op) {
  constexpr double fp32_twice = 2 * 4;
  return (walkers(gpu, op) - 1) * fp32_twice * sequences(op) * static_cast<double>(op.query * op.head_dim);
}

// A head takes the kernel of the next larger dimension.
double share_by_head(const std::map<int, double>& shares, std::int64_t head_dim) {
  const auto kernel = shares.lower_bound(static_cast<int>(head_dim));
  return kernel == shares.end() ? shares.rbegin()->second : kernel->second;
}

}  // namespace

double deterministic_share(const Gpu& gpu, int generation, const workloads::Operator& op) {
  if (!is_attention_backward(op) || op.batch * op.heads == 0 || generation < 2) return 1;
  return generation == 2 ? second_generation_share(gpu, op) : share_by_head(gpu.deterministic_attention, op.head_dim);
}

double deterministic_bytes(const Gpu& gpu, int generation, const workloads::Operator& op) {
  const bool walks = generation == 2 && is_attention_backward(op) && op.batch * op.heads > 0;
  return op.allocated_bytes + (walks ? walkers_bytes(gpu, op) : 0);
}

}  // namespace rehearse::sim
