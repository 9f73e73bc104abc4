// A step taken apart: which ranks are simulated, which operations they run, and what each costs alone. Made once, then executed, summarised
// and drawn by whoever is asked to.
#pragma once

#include "sim/engine/folding.hpp"
#include "sim/engine/prices.hpp"
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

}  // namespace rehearse::sim
