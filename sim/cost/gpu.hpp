// What a GPU and a software stack can do (platforms/gpus/*.yaml, platforms/software/*.yaml; docs/platform-formats.md), and the price of an
// operator.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"
#include "config/shape.hpp"
#include "workloads/collective.hpp"
#include "workloads/operators.hpp"
#include "workloads/phase.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {

struct ContentionPair {
  double alpha = 1;  // >= 1: the computation takes alpha times as long while this class of communication runs
  double beta = 1;   // >= 1: the communication takes beta times as long while computation runs
};

class CostModel;

// In place of a generation: PyTorch's own scaled_dot_product_attention, which takes other kernels on every maker's GPUs. The second
// generation where a GPU says nothing of it.
inline constexpr int sdpa = 0;
// Attention under a mask that PyTorch is handed as a tensor (padding): of a stack alone.
inline constexpr int masked = -1;
// FlashAttention's kernel of 2022 in Triton (flash_attn/flash_attn_triton.py), which is not its first generation's in CUDA.
inline constexpr int triton = -2;

struct Gpu {
  std::string name;
  std::string vendor = "nvidia";                        // GPUs of two have no way from memory to memory but through their hosts
  bool by_data_sheet = false;                           // without lines of its own: `cost` is what calibrated GPUs have in common
  bool any_order = false;                               // products in 8 bits read both operands by rows or by columns
  std::map<workloads::DType, double> peak_flops_per_s;  // dense
  double memory_bytes = 0;
  // Of them, what the driver keeps for itself. PyTorch's out-of-memory messages on an 80 GiB A100: "79.35 GiB total capacity".
  double driver_bytes = 0.65 * 1024 * 1024 * 1024;
  double memory_bytes_per_s = 0;
  double power_limit_w = 0;
  double launch_s = 0;   // host time of one bare kernel launch (driver)
  double host_time = 1;  // the processor on its board takes so many times as long to issue a kernel as an x86 server's
  // Atomic adds to elements of 16 bits. The default is H100's: PyTorch's index_add_ adds 2^22 rows of 128 in 4,719 us there
  // (pytorch/pytorch, pull request 175760).
  double adds_per_s = 114e9;
  // Of one sum over blocks (Operator::block_sums): Transformer Engine's rmsnorm_bwd_finalize_general over a head's 128 columns adds one row
  // of each resident block after another by four threads a column. 58 and 78 us each on H20 of 78 multiprocessors (112 norms, four in each
  // of 28 blocks, of a Cosmos 2B: 6.5 and 8.74 ms an iteration in a public profile of July 2026), 98 and 132 us with H100's 132.
  double block_sum_s = 115e-6;
  // Of the rate of flash attention's backward, what a deterministic one reaches, by head dimension; FlashAttention-2's follows from the
  // multiprocessors (sim/cost/deterministic.cpp). The default is FlashAttention-3's on H100, whose sums wait for one another: 361 of 575
  // TFLOP/s, causal, 2 x 8,192 tokens, 16 heads of 128 (Dao-AILab/flash-attention, pull request 1893). Of cuDNN's on Hopper no figure was
  // found (assumption: as that).
  std::map<int, double> deterministic_attention{{128, 0.63}};
  double multiprocessors = 132;               // the default is H100's
  double shared_memory_bytes = 227 * 1024.0;  // that a block of a kernel may have; the default is H100's
  // At which its driver takes memory back from PyTorch's allocator and hands it out again, of one process (sim/memory/allocator_time.hpp).
  // Fitted to the four steps of nanotron's sweep on H100 (fitted half) that do so: 1.5 to 2 ms for each GiB and rank. No benchmark by size
  // was found; GPUs of other vendors as well (assumption).
  double retaking_bytes_per_s = 670e9;
  // Of the rate of a linear layer's products, what those reach whose rows are no whole multiples of 16 bytes. NVIDIA's others: the
  // geometric mean of A100's and H100's files.
  double unaligned_share = 0.36;
  double eager_share = 1;  // of the rate of memory-bound kernels, what those of PyTorch's own operators reach
  std::map<workloads::Phase, ContentionPair> contention;  // by what communication is for; those that the file names
  std::shared_ptr<const CostModel> cost;                  // by operator class and precision
  // Generations of flash attention, triton, sdpa and masked: by the head dimension that a kernel is compiled for, its rate over that of
  // `cost`'s line. One that is not here runs at that rate, masked at a third of the second generation's.
  std::map<int, std::map<int, double>> flash_share;
  double block_scaled_share = 1;  // of the rate of products in 8 bits, what those reach whose operands are scaled by blocks
  std::map<workloads::GroupedKernel, double> grouped_share;         // of the rate of products; one that is not here reaches all of it
  std::map<workloads::GroupedKernel, double> narrow_grouped_share;  // the same in 8 or 4 bits; one that is not here as in 16
  // Rows that such a kernel computes more for each expert: a tile's, on each of the GPU's devices; one that is not here none.
  std::map<workloads::GroupedKernel, double> grouped_tile_rows;

  // Of one kernel on the host, which takes a stack so long on an x86 server.
  [[nodiscard]] double issue_s(double stack_s) const { return host_time * (launch_s + stack_s); }
  [[nodiscard]] ContentionPair contention_with(workloads::Phase communication) const {
    const auto it = contention.find(communication);
    return it == contention.end() ? ContentionPair{} : it->second;
  }
};

// Releases of NCCL between which the sizes of a communicator's buffers differ; each stands for those up to the next.
enum class Nccl : std::uint8_t { none, v2_10, v2_14, v2_18, v2_19, v2_23 };

// Device memory beside the model's tensors.
struct MemoryOverhead {
  double context_bytes = 0;       // CUDA context and the libraries' workspaces
  double communicator_bytes = 0;  // per communicator, of libraries whose buffers `nccl` does not tell
  Nccl nccl = Nccl::none;         // sim/memory/nccl_buffers.hpp
  bool world_group = false;       // a communicator of all ranks beside those of the directions of parallelism
  bool model_group = false;       // and one of the ranks that share a replica
  bool lone_groups = false;       // tp, dp and the model have communicators of one rank too
  double fragmentation = 0;       // what the allocator holds beyond the tensors' peak, as a share of it
  workloads::MemoryHabits habits;
};

struct Software {
  std::string name;
  bool trains = true;                     // false: an engine that only serves
  std::map<std::string, bool> fusions;    // "softmax", "norm", "activation", "rope", "cross_entropy", ...
  workloads::KernelFusions kernels;       // what it does beyond `fusions`; kernel_fusions() has both
  bool replays_graphs = false;            // the job's cuda_graphs: kernels cost the host nothing
  bool deterministic = false;             // torch.use_deterministic_algorithms(True), and no kernel whose sums come in any order
  bool launch_blocking = false;           // the host waits for every kernel before it issues the next (CUDA_LAUNCH_BLOCKING)
  double kernel_time = 1;                 // kernels take so many times what the GPU's file says
  double cast_time = 1;                   // casts to 8 or 4 bits and transposes of what was cast so many times what their bytes take
  double launch_s = 0;                    // per kernel, added to the kernel's time: the gap between dependent kernels on the GPU
  double issue_s = 0;                     // per kernel on the host, on top of the driver's launch: bounds kernels that are shorter than it
  std::optional<double> experts_issue_s;  // the same of routing, permutations and experts; nothing: as `issue_s`
  double network_wait_s = 0;              // more of that for each rank of tp, in pipelines that leave the scale-up domain
  double network_rate = 0;   // bytes per second of a GPU's messages that leave the scale-up domain, at most; 0: what links give
  double zero3_issue_s = 0;  // more of that with ZeRO-3: hooks of every module that gather and release
  double tp_issue_s = 0;     // more of that with tensor parallelism: operators on tensors that know how they are cut (DTensor)
  double step_s = 0;         // per step: data loading, logging, host work that nothing hides
  MemoryOverhead memory;
  bool zero3_by_tensor = false;  // ZeRO-3 gathers and reduces each parameter tensor by itself, beside nothing
  bool adapter_units = false;    // ZeRO-3: every matrix of an adapter is gathered and reduced by itself, beside nothing
  workloads::GatheredAgain gathers_again = workloads::GatheredAgain::none;  // ZeRO-3: of a layer that was recomputed in full
  bool copies_exchanged = false;       // ZeRO-2 and 3: weights are copied out of what was gathered, gradients into what is reduced
  bool flat_parameters = false;        // ZeRO-2 and 3: weights are views of what was gathered, whose gradients are joined (FSDP1)
  bool root_unit = false;              // ZeRO-3: embedding, last norm and head are one unit, the root's
  bool all_reduces_gradients = false;  // ZeRO-1 and 2: every rank gets the whole sum
  bool broadcasts_weights = false;     // ZeRO-1 and 2: whole tensors have owners, who broadcast them one after another
  bool whole_messages = false;         // pipeline: each rank of tp sends all of the activations
  double host_update = 1;              // of the host memory's rate, what an update of the optimizer there reaches
  bool selective_by_product = false;   // recompute: selective keeps attention and every second product
  bool selective_narrow = false;       // those in 8 bits as well
  workloads::Scaling fp8_recipe = workloads::Scaling::delayed;  // of dense products in 8 bits, where the job names none
  bool early_stop = false;                                      // recomputation ends with the last tensor that backward reads
  bool joins_at_once = false;  // flat_parameters: gradients, before the next unit's parameters are asked for
  std::vector<std::string> collectives = workloads::rings_and_trees();  // algorithms that its communication library has
  int flash = 3;                                                        // generation of flash attention, triton, sdpa or masked
};

// Seconds of one operator on a GPU. Interchangeable models (`profile`, `roofline`, `modified-roofline`) chosen per operator class and
// precision in the GPU's file (equations 1, 17, 19).
class CostModel {
 public:
  virtual ~CostModel() = default;
  [[nodiscard]] virtual double seconds(const workloads::Operator& op) const = 0;
  // Whether it has a line for such operators; without one `seconds` refuses them.
  [[nodiscard]] virtual bool prices(workloads::OperatorClass, workloads::DType) const { return true; }
};

[[nodiscard]] Gpu read_gpu(const config::Node& node, const std::string& name);
[[nodiscard]] Software read_software(const config::Node& node, const std::string& name);
[[nodiscard]] config::Shape gpu_shape();
[[nodiscard]] config::Shape software_shape();

// The stack's fusions as workloads take them: `workload.fusions = kernel_fusions(software)`.
[[nodiscard]] workloads::KernelFusions kernel_fusions(const Software& software);

// An operator alone: the larger of the GPU's time, cost + kernels * software.launch_s, and the host's,
// kernels * gpu.issue_s(software.issue_s); of routing and experts that is software.experts_issue_s.
[[nodiscard]] double operator_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op);

// Operators among others that the host issues ahead of the GPU: the GPU's time, and by share of the host's time what the GPU waits for the
// host in the queue as a whole. others_s: what else the GPU does meanwhile (collectives), `others` its launches. wait_s: more per kernel on
// the host.
[[nodiscard]] double queued_seconds(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators,
                                    std::span<const workloads::Operator> queue, double others_s, int others, double wait_s);

}  // namespace rehearse::sim
