// The model that stands in where the allocator cannot be asked for a model's own tensors: the same without those that no order knows.
#pragma once

#include <memory>

#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// compiled refers to nothing outside of it; memory: by formula, of each stage.
struct NearestKnown {
  Job job;
  workloads::Compiled compiled;
  MemoryResult memory;
};

// Without norms behind branches, MTP modules, and biases and clamped gates of experts, which only add tensors to those of the rest, and
// where that is no known order either (unit_tensors.hpp) without norms over heads; none where that is none.
[[nodiscard]] std::unique_ptr<const NearestKnown> nearest_known(const Job& job);

}  // namespace rehearse::sim
