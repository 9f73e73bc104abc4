// The pipelined part of a step where stages or chunks differ, forwards and backwards overlap, or messages leave early: no closed form is
// exact there, but the order of the slots is known, and walking it costs a maximum and a sum per slot.
#pragma once

#include <vector>

#include "sim/analytic/pipeline_formula.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// When a stage is at work, in seconds from the start of the pipeline.
struct StageSpan {
  double start_s = 0, end_s = 0;
  std::vector<double> completed_s;  // [chunk] when the last slot that adds to its gradients ends
};

// [stage]. A slot starts when the one before it on its stage has ended and its message is there; paired slots start as one.
[[nodiscard]] std::vector<StageSpan> walk_slots(const workloads::Workload& workload, const PipelineTimes& times);

}  // namespace rehearse::sim
