// What a step costs, whoever computed it, and its timeline. The only thing reporters see.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/name_store.hpp"
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

struct RankResult {
  int rank = 0;   // representative global rank
  int stage = 0;  // pipeline stage
  int ranks = 1;  // how many ranks it stands for
  PhaseTimes phases;
};

struct CollectiveResult {
  std::string name;       // "all-reduce"
  std::string group;      // "tp", "dp", "pp", ...
  std::string algorithm;  // "ring", "tree", ...
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
  double stuck_bytes = 0;  // of those, what it cannot give back when memory runs short
  double host_bytes = 0;   // most that it keeps in its host's memory at any time

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

// One bar of the timeline.
struct TimelineEvent {
  std::string_view name;    // "F0.3 layer 12", "ncclDevKernel_AllGather_RING_LL(...)"; owned by the Timeline
  std::uint32_t rank = 0;   // index into Timeline::ranks
  std::uint8_t stream = 0;  // index into Timeline::streams
  Phase phase = Phase::compute;
  double start_s = 0, end_s = 0;
  std::int32_t microbatch = -1, chunk = -1, layer = -1;
  std::int32_t collective = -1;                                         // index into Timeline::collectives (copies too), or -1
  enum class End : std::uint8_t { ended, hung, cut } end = End::ended;  // hung: waits until detection; cut: stopped by the failure
};

struct TimelineInstant {  // something that happens at one time
  std::string name;
  std::vector<std::uint32_t> ranks;  // indices into Timeline::ranks
  double at_s = 0;
};

struct TimelineFlow {              // an arrow: the end of one event to the start of another (pipeline sends)
  std::uint32_t from = 0, to = 0;  // indices into events
};

struct TimelineRank {
  int rank = 0, stage = 0, ranks = 1;
  int node = 0, gpu_in_node = 0;
  double dead_s = -1;  // since when its GPU is dead; < 0: it is not
};

struct TimelineCollective {  // what Kineto puts into the args of a NCCL kernel, or of a copy
  std::string name;          // "allreduce", "_allgather_base", "reduce_scatter", "send", "recv", "Memcpy DtoH (Device -> Pinned)"
  std::string group;         // "tp"
  std::string dtype;         // "BFloat16"
  double bytes = 0;          // In msg size x element size
  int group_size = 0;
  std::vector<int> group_ranks;
  std::string algorithm = {};  // "ring", "tree", ...: what it was priced with
};

struct MemorySample {
  double at_s = 0;
  MemoryBytes held;  // from then on
};

struct Timeline {
  std::vector<std::string> streams;  // "compute", "tp", ...
  std::vector<double> steps_s;       // when each simulated step begins, and when the last one ends
  double issue_s = 0, launch_s = 0;  // of one kernel on the host: the framework's time, then the driver's
  std::vector<TimelineRank> ranks;
  std::vector<TimelineCollective> collectives;
  std::vector<TimelineEvent> events;  // by start time, then rank, then stream
  std::vector<TimelineFlow> flows;
  std::vector<TimelineInstant> instants;
  std::vector<std::vector<MemorySample>> memory;  // [rank] in order of time; the first at 0
  NameStore names;                                // of the events
};

// Fills mean, throughput, MFU and bubble share from step_s and ranks.
void finish(StepResult& result, double tokens, double model_flops, int gpus, double peak_flops_per_s);

}  // namespace rehearse::sim
