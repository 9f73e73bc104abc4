// The peak of device memory by formula: equations (4)-(6) (docs/memory.md).
#pragma once

#include <vector>

#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// One entry per pipeline stage. Walks the order of the schedule without times: exact also where chunks are uneven. Where the
// simulated steps differ, each stage in the one that needs most.
// `compiled`: the job's. walked_by_slots: only what PeakSlots lists, where it can; otherwise every unit of every micro-batch, which gives
// the same and is there to be compared with.
[[nodiscard]] MemoryResult predicted_memory(const Job& job, const workloads::Compiled& compiled, bool walked_by_slots = true);
[[nodiscard]] MemoryResult predicted_memory(const Job& job);

// Of the memory of the GPU that is fullest by it.
[[nodiscard]] double needed_share(const MemoryResult& memory);

// [layer of the model, then MTP modules] Whether a layer with experts fits whenever it is at work, on every rank and in every
// simulated step; false for other layers.
[[nodiscard]] std::vector<bool> expert_layers_that_fit(const Job& job);

}  // namespace rehearse::sim
