// What a step costs, whoever computed it. With the timeline (sim/timeline.hpp) the only thing reporters see of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/memory_use.hpp"
#include "workloads/phase.hpp"

namespace rehearse::sim {

using workloads::key_of;
using workloads::memory_use_count;
using workloads::MemoryUse;
using workloads::name_of;
using workloads::Phase;
using workloads::phase_count;

struct PhaseTimes {
  std::array<double, phase_count> seconds{};
  [[nodiscard]] double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] double total() const;
};

// The mean of ranks.
class MeanPhases {
 public:
  void add(const PhaseTimes& phases, int ranks) {
    weight_ += ranks;
    for (std::size_t i = 0; i < phase_count; ++i) sum_.seconds[i] += ranks * phases.seconds[i];
  }
  [[nodiscard]] PhaseTimes mean() const {
    PhaseTimes mean = sum_;
    for (double& seconds : mean.seconds) seconds /= weight_;
    return mean;
  }

 private:
  PhaseTimes sum_;
  double weight_ = 0;
};

struct RankResult {
  int rank = 0;   // representative global rank
  int stage = 0;  // pipeline stage
  int ranks = 1;  // how many ranks it stands for
  PhaseTimes phases;
};

// "ring LL", as tables show it; "ring", where it is no other protocol than Simple.
[[nodiscard]] inline std::string with_protocol(const std::string& algorithm, const std::string& protocol) {
  return protocol.starts_with("LL") ? algorithm + " " + protocol : algorithm;
}

struct CollectiveResult {
  std::string name;       // "all-reduce"
  std::string group;      // "tp", "dp", "pp", ...
  std::string algorithm;  // "ring", "tree", ...
  std::string protocol;   // CallPrice::protocol_name()
  int ranks = 0;
  double bytes = 0;      // of one call
  long calls = 0;        // per rank and step (largest over ranks)
  double seconds = 0;    // of one call, alone; the mean where calls of one size differ (exchanges of tokens that are routed unevenly)
  double longest_s = 0;  // of those calls
  double in_step_s = 0;  // of one call in the executed step, mean; 0 from the formula. Longer than alone where links are shared
  double algbw_bytes_per_s = 0, busbw_bytes_per_s = 0;
};

struct MemoryBytes {
  std::array<double, memory_use_count> bytes{};
  [[nodiscard]] double& operator[](MemoryUse use) { return bytes[static_cast<std::size_t>(use)]; }
  [[nodiscard]] double operator[](MemoryUse use) const { return bytes[static_cast<std::size_t>(use)]; }
  [[nodiscard]] double total() const;
};

struct RankMemory {
  int rank = 0;   // representative global rank
  int stage = 0;  // pipeline stage
  int ranks = 1;  // how many ranks it stands for
  MemoryBytes at_peak;
  double capacity_bytes = 0;  // of the GPU, without what its driver keeps
  double at_s = 0;            // of the peak, since the start of the step; analytic: 0, there is no timeline
  std::string operation;      // that runs at the peak: "B layer 7"
  int step = 0;               // of the simulated steps, when they differ: the one with the peak
  int microbatch = -1;        // at whose operation the peak is; -1: at none's
  // Free blocks that the allocator keeps; below 0 where the formula counts blocks that come free late (kept_gathers of the stack) and the
  // allocator, asked tensor by tensor, did without them.
  double cached_bytes = 0;
  double stuck_bytes = 0;        // of those, what it cannot give back when memory runs short
  double returned_bytes = 0;     // of those, what the device has back when a step's backward has ended, where memory ran short on the way
  bool cache_simulated = false;  // by the allocator on the rank's own tensors; otherwise a share of these that its stack states
  double retaken_bytes = 0;      // in a step, that the allocator asks the device for again since it had to give free blocks back
  double host_bytes = 0;         // most that it keeps in its host's memory at any time

  [[nodiscard]] double peak_bytes() const { return at_peak.total(); }
  [[nodiscard]] double tensor_bytes() const { return peak_bytes() - at_peak[MemoryUse::framework]; }  // torch.cuda.max_memory_allocated
  [[nodiscard]] double device_bytes() const;                                                          // as nvidia-smi shows
  [[nodiscard]] double needed_bytes() const { return peak_bytes() + stuck_bytes; }
  [[nodiscard]] bool fits() const { return needed_bytes() <= capacity_bytes; }
};

// The node whose GPUs keep most in its host's memory.
struct HostMemory {
  int node = 0;
  double bytes = 0;
  double capacity_bytes = 0;  // 0 when the job keeps nothing there
  [[nodiscard]] bool fits() const { return bytes <= capacity_bytes; }
};

struct MemoryResult {
  std::vector<RankMemory> ranks;  // as StepResult::ranks
  HostMemory host;
  [[nodiscard]] bool fits() const;  // GPUs and host
  // The rank with the highest peak, the first of equals; null without ranks.
  [[nodiscard]] const RankMemory* fullest() const;
};

// Of one step and layer, in (token, expert) pairs of one expert-parallel group.
struct ExpertLayerLoad {
  int step = 0, layer = 0;
  double routed = 0;   // by the routers, over all micro-batches
  double dropped = 0;  // of those, beyond the experts' capacity
  int rank = 0;        // representative global rank and micro-batch of the largest load
  int microbatch = 0;
  double tokens = 0;  // that this rank's experts get there
};

// How unevenly the routed experts are loaded: over all simulated steps, where they differ.
struct ExpertLoadResult {
  int step = 0, rank = 0, layer = 0, microbatch = 0;  // of the largest load, the rank a representative global one
  double tokens = 0;                                  // (token, expert) pairs of one micro-batch that this rank's experts get there
  double mean_tokens = 0;                             // the same of all ranks, layers, micro-batches and steps
  double dropped_share = 0;                           // of all pairs, beyond the experts' capacity
  std::vector<int> chunks;                            // [layer] of the model, then of MTP modules; 0: no experts
  std::vector<ExpertLayerLoad> layers;                // with experts, step by step
};

// What kept ranks from being folded into one, in the order in which it told them apart, and how many classes there were then.
struct ToldApart {
  std::string by;
  int classes = 0;
};

struct StepResult {
  std::string method;  // "analytic", "simulated", "critical path"
  double step_s = 0;
  PhaseTimes mean;                // over all ranks; adds up to step_s
  std::vector<RankResult> ranks;  // analytic: one per pipeline stage; simulated: one per simulated rank
  MemoryResult memory;
  std::vector<CollectiveResult> collectives;
  std::optional<ExpertLoadResult> experts;  // of models that have them
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  double model_flops_per_gpu_per_s = 0;  // model FLOPs (no recompute, causal attention counted in full) / (gpus * step)
  double mfu = 0;                        // of the compute precision's dense peak
  double bubble_share = 0;               // bubble / (step - bubble)
  std::vector<ToldApart> told_apart;     // simulated
  std::vector<double> step_seconds;      // each simulated step. Where they differ (routing), step_s and the phases are their means
  // how it was made
  std::uint64_t seed = 0;
  std::string input_hash;
  std::string solver;   // simulation.solver, of a simulated step; otherwise empty
  long activities = 0;  // simulated: operations executed
};

// What a failure inside a step left behind (docs/simulation.md, "When something fails").
struct HungOperation {
  int rank = 0;           // on which it hangs; may stand for others
  std::string operation;  // "recv F 3" is the receiving side of a message
  std::string group;      // "dp"
  double since_s = 0;     // it waits for what failed, or for who waits for it
};

struct RankAftermath {
  int rank = 0, stage = 0, ranks = 1;
  enum class End : std::uint8_t { dead, waiting, done } end = End::waiting;
  double last_s = 0;  // the end of its last operation: from then on it waits, or has done its part of the step
};
[[nodiscard]] std::string_view name_of(RankAftermath::End end);  // "dead", "waiting", "done"

struct Aftermath {
  struct Failure {
    std::string what;  // as the job calls it
    double at_s = 0;
    std::vector<int> ranks;
  };
  std::vector<Failure> failures;
  bool detected = false;  // else nothing in this step waits for what failed
  double detected_s = 0;  // the first communication that hangs has timed out
  double lost_s = 0;      // since the start of the step: all of that has to be done again
  long ended = 0, operations = 0;
  std::vector<HungOperation> hung;   // in order of time
  std::vector<RankAftermath> ranks;  // as the timeline's
  std::uint64_t seed = 0;
  std::string input_hash;
};

// What follows from the phases of the ranks alone: mean, bubble share.
void add_means(StepResult& result);
// Every rank's step is so much longer, which its phases already say.
void lengthen(StepResult& result, double by_s);
// Fills mean, throughput, MFU and bubble share from step_s and ranks.
void finish(StepResult& result, double tokens, double model_flops, int gpus, double peak_flops_per_s);

}  // namespace rehearse::sim
