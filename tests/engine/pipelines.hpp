// Pipelines with prescribed chunk times and free messages, run by the longest path or on SimGrid.
#pragma once

#include <functional>

#include "sim/engine/critical_path.hpp"
#include "sim/engine/executor.hpp"
#include "sim/job/job.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::tests {

// A model of p*v equal layers without embedding and head.
workloads::Workload pipeline(const std::string& schedule, int stages, int chunks, int microbatches);

// Seconds of a forward or backward chunk: (stage, forward?) -> s.
using ChunkSeconds = std::function<double(int stage, bool forward)>;

struct PricedPipeline {
  workloads::Workload workload;
  workloads::Folding folding;
  workloads::StepGraph graph;
  sim::Prices prices;
};
// Stage granularity. Every message between stages takes hop_s (a pure delay).
PricedPipeline priced(const workloads::Workload& workload, const ChunkSeconds& chunk_s, double hop_s);

double longest_path_s(const PricedPipeline& pipeline);
sim::Execution on_simgrid(const PricedPipeline& pipeline, const std::vector<sim::RankFailure>& failures = {});  // once per process
double on_simgrid_in_child_s(const PricedPipeline& pipeline);

}  // namespace rehearse::tests
