// The price of an operator under a stack.
#include <algorithm>
#include <cmath>

#include "sim/cost/deterministic.hpp"
#include "sim/cost/queue.hpp"
#include "workloads/model.hpp"

namespace rehearse::sim {
namespace {

// Of the GPU's attention line, what a generation of flash attention reaches. A head takes the kernel of the next larger dimension.
double generation_share(const Gpu& gpu, int generation, int head_dim) {
  const auto shares = gpu.flash_share.find(generation);
  if (shares == gpu.flash_share.end()) return 1;
  const auto kernel = shares->second.lower_bound(head_dim);
  return kernel == shares->second.end() ? shares->second.rbegin()->second : kernel->second;
}

// PyTorch's memory-efficient kernel runs Ampere's instructions, as FlashAttention-2 does, at a third of its rate:
// ljm565/universal-llm-trainer's Llama on A100; its H100, not fitted, is then 8 % slow.
constexpr double masked_of_second = 1.0 / 3;

// Of the square of queries and keys, what the operator is of: with a mask a kernel takes all of it, windows too.
double share_of_square(const workloads::Operator& op) {
  if (!op.causal || op.query == 0) return 1;
  const auto query = static_cast<double>(op.query);
  return workloads::attended_positions(query, static_cast<double>(op.key)) / query;
}

// Over the operator's FLOPs, what a kernel for rows sorted by expert computes: rows of two experts in one tile are computed once for each,
// masked (megablox/gmm.py, make_group_metadata), which is one tile more an expert wherever its rows begin.
double tiled_work(const Gpu& gpu, const workloads::Operator& op) {
  const auto tile = gpu.grouped_tile_rows.find(op.grouped);
  if (tile == gpu.grouped_tile_rows.end()) return 1;
  return 1 + tile->second / static_cast<double>(op.pass == workloads::Pass::backward_weight ? op.k : op.m);
}

// By the GPU's line. A kernel under a mask knows of no window.
double line_s(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  if (const double work = tiled_work(gpu, op); work != 1) {
    workloads::Operator tiled = op;
    tiled.flops *= work;
    return gpu.cost->seconds(tiled);
  }
  if (software.flash != masked || op.key >= op.query) return gpu.cost->seconds(op);
  workloads::Operator whole = op;
  whole.key = op.query;
  return gpu.cost->seconds(whole);
}

int generation_of(const Gpu& gpu, const Software& software) {
  return software.flash == sdpa && !gpu.flash_share.contains(sdpa) ? 2 : software.flash;
}

double masked_share(const Gpu& gpu, int head_dim) {
  return gpu.flash_share.contains(masked) ? generation_share(gpu, masked, head_dim) : masked_of_second * generation_share(gpu, 2, head_dim);
}

// What the stack's attention reaches of the GPU's line.
double flash_share(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  if (op.cls != workloads::OperatorClass::attention) return 1;
  const auto head_dim = static_cast<int>(op.head_dim);
  if (software.flash == masked) return share_of_square(op) * masked_share(gpu, head_dim);
  const int generation = generation_of(gpu, software);
  return generation_share(gpu, generation, head_dim) * (software.deterministic ? deterministic_share(gpu, generation, op) : 1);
}

// Of what deterministic algorithms move beside it, at the rate of kernels bound by memory.
double deterministic_s(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  if (!software.deterministic) return 0;
  workloads::Operator moved;
  moved.cls = workloads::OperatorClass::memory_bound;
  moved.bytes = deterministic_bytes(gpu, generation_of(gpu, software), op);
  return moved.bytes > 0 ? gpu.cost->seconds(moved) : 0;
}

double grouped_share(const Gpu& gpu, const workloads::Operator& op) {
  if (const auto narrow = gpu.narrow_grouped_share.find(op.grouped); bytes_of(op.dtype) < 2 && narrow != gpu.narrow_grouped_share.end())
    return narrow->second;
  const auto share = gpu.grouped_share.find(op.grouped);
  return share == gpu.grouped_share.end() ? 1 : share->second;
}

double cast_time(const Software& software, const workloads::Operator& op) { return op.casts ? software.cast_time : 1; }

// Neither hides the other whole: the host gets ahead over long kernels and falls behind over short ones. 4 fits vTrain's runs on one node
// (7.1 % mean error; 7.3 % with 8, 7.5 % with the larger of both).
constexpr double queue_knee = 4;

double block_scaled_share(const Gpu& gpu, const workloads::Operator& op) { return op.by_blocks ? gpu.block_scaled_share : 1; }

double host_s(const Gpu& gpu, const Software& software, bool of_experts = false) {
  if (software.replays_graphs) return 0;
  return gpu.issue_s(of_experts ? software.experts_issue_s.value_or(software.issue_s) : software.issue_s);
}

struct Share {
  double device_s = 0, host_s = 0;
};

// wait_s: more per kernel on the host.
Share share_of(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators, double wait_s = 0) {
  Share share;
  for (const workloads::Operator& op : operators) {
    if (!op.captured) share.host_s += op.kernels * (host_s(gpu, software, op.of_experts) + wait_s);
    if (op.flops == 0 && op.bytes == 0) continue;  // work of the host alone
    const double cost_s = line_s(gpu, software, op) / (op.eager ? gpu.eager_share : 1);
    const double kernel_s = std::max(cost_s, op.adds / gpu.adds_per_s);
    const double times = software.kernel_time * cast_time(software, op) * op.times;
    const double share_of_line = flash_share(gpu, software, op) * grouped_share(gpu, op) * block_scaled_share(gpu, op);
    const double alone_s = times * kernel_s / share_of_line;
    share.device_s += alone_s + deterministic_s(gpu, software, op) + op.block_sums * gpu.block_sum_s + software.launch_s * op.kernels;
  }
  return share;
}

// Of the host for each collective: a ring of more than two sends a block and receives the next by calls of their own (Transformer Engine,
// context_parallel.py: flash_attn_p2p_communicate, batched with cp 2 alone).
int calls_of(const workloads::PassQueue::Pair& pair) {
  return pair.collective.kind == workloads::CollectiveKind::send_recv && pair.products > 2 ? 2 : 1;
}

}  // namespace

double operator_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  const Share share = share_of(gpu, software, {&op, 1});
  return software.launch_blocking ? share.host_s + share.device_s : std::max(share.device_s, share.host_s);
}

double device_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op) {
  return share_of(gpu, software, {&op, 1}).device_s;
}

double queued_seconds(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators,
                      std::span<const workloads::Operator> queue, double others_s, int others, double wait_s) {
  const Share mine = share_of(gpu, software, operators, wait_s), all = share_of(gpu, software, queue, wait_s);
  const double host = all.host_s + others * (host_s(gpu, software) + wait_s), device = all.device_s + others_s;
  const double wait =
      software.launch_blocking ? host : std::pow(std::pow(host, queue_knee) + std::pow(device, queue_knee), 1 / queue_knee) - device;
  return mine.device_s + (all.host_s > 0 ? wait * mine.host_s / all.host_s : 0);
}

double seconds_of(const workloads::PassQueue::Pair& pair, double product_s, double collective_s) {
  return (pair.products - pair.together) * product_s + pair.together * std::max(product_s, collective_s) +
         (pair.collectives - pair.together) * collective_s;
}

int issued_of(std::span<const workloads::PassQueue::Pair> pairs) {
  int issued = 0;
  for (const workloads::PassQueue::Pair& pair : pairs) {
    issued += pair.product.captured ? 0 : pair.products * pair.product.kernels;
    issued += pair.collective.captured ? 0 : pair.collectives * calls_of(pair);
  }
  return issued;
}

double more_issue_s(const Gpu& gpu, const Software& software, const topology::ClusterSpec& cluster, const workloads::Workload& workload) {
  if (software.replays_graphs) return 0;
  const workloads::Parallel& parallel = workload.parallel;
  const double network = parallel.pp > 1 && workload.gpus() > cluster.domain_gpus() ? software.network_wait_s * parallel.tp : 0;
  const double hooks = workload.optimizer.zero_stage == 3 ? software.zero3_issue_s : 0;
  const double cut_tensors = parallel.tp > 1 ? software.tp_issue_s : 0;
  return network + gpu.host_time * (hooks + cut_tensors);
}

}  // namespace rehearse::sim
