// Equations (7)-(14), (20)-(24), (33)-(35): a step's time in numbers. No text, no files; nothing is allocated once a workspace has grown
// to the largest plan (offloading apart). Each thread has a workspace and a price book of its own.
#pragma once

#include <span>

#include "sim/analytic/plan_cost.hpp"
#include "sim/analytic/workspace.hpp"

namespace rehearse::sim {

struct StepTerms {
  double step_s = 0;
  std::span<const PhaseTimes> phases;  // [stage], in the workspace; none where they were not asked for
};

// `workload` may differ from the one that was compiled and priced in batch.global, overlap.{pp, dp_gradients, dp_parameters} and, where no
// operator depends on it, optimizer.zero_stage; `sync` is its own. stages_share: they leave NICs and host memories to one another when
// their steps end at different times; otherwise each has its share of all at once.
[[nodiscard]] StepTerms step_terms(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                                   const workloads::ReplicaSync& sync, const PlanCost& plan, PriceBook& prices, Workspace& workspace,
                                   bool by_phase = true, bool stages_share = true);

}  // namespace rehearse::sim
