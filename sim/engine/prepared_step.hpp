// A step taken apart: which ranks are simulated, which operations they run, and what each costs alone. Made once, then executed, summarised
// and drawn by whoever is asked to.
#pragma once

#include <memory>

#include "sim/engine/folding.hpp"
#include "sim/engine/prices.hpp"
#include "sim/job/job.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

struct PreparedStep {
  // `plan`: the job's workload compiled at its granularity; used where the order within units counts, else compiled anew. `which`: of the
  // steps of the routing. It keeps what it needs of both.
  PreparedStep(const Job& its_job, const workloads::Compiled& plan, int which = 0);
  PreparedStep(const PreparedStep&) = delete;
  PreparedStep& operator=(const PreparedStep&) = delete;

  const Job job;
  const int step;
  CommunicationModel model;
  Fold fold;
  const workloads::Compiled compiled;
  workloads::StepGraph graph;
  Prices prices;
};

// The job's workload at the granularity of its simulation.
[[nodiscard]] workloads::Compiled compiled_for_simulation(const Job& job);

// Beside it the one into layers, which formula and memory have; one where both are cut alike.
struct CompiledJob {
  explicit CompiledJob(const Job& job);
  std::shared_ptr<const workloads::Compiled> for_simulation, into_layers;
};

}  // namespace rehearse::sim
