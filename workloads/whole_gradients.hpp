// ZeRO-2 with a pipeline, ZeRO-2 and 3 with no_sync: a chunk's gradients are added up whole over its micro-batches, from its first weight
// gradient on, and are sharded by the one reduction behind its last. Where every chunk's backwards follow one another (as many
// micro-batches as stages), only one or two chunks lie whole at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/schedule.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

// Of a chunk while a slot runs, in the order of what is held.
enum class ChunkGradients : std::uint8_t {
  absent,   // no weight gradient yet
  reduced,  // sharded if reductions begin behind the last weight gradient (overlap.dp_gradients); whole until the end of the step if not
  whole     // added up, or on their way while the slot behind the last weight gradient runs
};

// [slot * chunks + chunk]. `slots`: a stage's in their order, those that run together as one.
[[nodiscard]] std::vector<ChunkGradients> chunk_gradients(std::span<const std::span<const Slot>> slots, std::size_t chunks);

// Of one of a slot's chunks: whether they lie whole.
[[nodiscard]] inline bool lie_whole(ChunkGradients state, bool overlapped) {
  return state == ChunkGradients::whole || (state == ChunkGradients::reduced && !overlapped);
}

// Whether that is what the workload does.
[[nodiscard]] bool shards_gradients_at_the_end(const Workload& workload, const ReplicaSync& sync);

// Bytes per parameter of the gradients that a rank adds up.
[[nodiscard]] double gradient_bytes(const Workload& workload, const MemoryHabits& habits);

// Whether a step's one backward makes each unit's gradients, which are given back after the update. With more micro-batches the later ones
// find those of the first. ZeRO-3 with master weights of its own (DeepSpeed's stage3.py) keeps one buffer for its shard of them.
[[nodiscard]] bool makes_gradients_anew(const Workload& workload, const MemoryHabits& habits);
// Of `parameters`: what of their gradients a rank's GPU keeps until the update.
[[nodiscard]] double kept_gradients(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const Parameters& what);

// What a chunk's gradients take beside their shard while they lie whole.
[[nodiscard]] double beside_the_shard(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync,
                                      const Parameters& what);
// `bytes` [chunk] of a stage's program; empty: nothing lies whole for a while.
void list_whole_gradients(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const StageProgram& stage,
                          std::vector<double>& bytes);

// What of `bytes` [chunk] lies whole in a slot.
[[nodiscard]] double whole_now(std::span<const ChunkGradients> states, std::span<const double> bytes, bool overlapped);

}  // namespace rehearse::workloads
