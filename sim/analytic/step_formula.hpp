// Equations (7)-(14), (20)-(24), (33)-(35): a step's time in numbers. No text, no files; nothing is allocated once a workspace has grown
// to the largest plan (offloading apart). Each thread has a workspace and a price book of its own.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/analytic/plan_cost.hpp"
#include "sim/analytic/replica_cost.hpp"
#include "sim/analytic/slot_walk.hpp"
#include "sim/analytic/stage_sharing.hpp"
#include "sim/analytic/unit_walk.hpp"

namespace rehearse::sim {

// What one evaluation after another writes its numbers into, and what they have in common.
struct Workspace {
  const SlotOrder& slot_order(const workloads::Workload& workload, const workloads::Compiled& compiled);
  const PipelineFormula& formula(const workloads::Workload& workload, const workloads::Compiled& compiled);
  [[nodiscard]] std::size_t steps_held() const { return steps_held_; }  // of those orders

  std::vector<UnitTerms> units;
  std::vector<const UnitTerms*> order;
  std::vector<ChunkTerms> chunks;
  std::vector<StageTerms> stages;
  UnitWalks unit_walks;
  UnitSpans units_walked;
  std::vector<Pieces> forward, backward;
  PipelineTimes times;
  std::vector<double> no_hops, ends;
  std::vector<StageWork> works;
  std::vector<Completed> completed, mirrored;
  SlotWalk walk;
  std::vector<std::pair<double, double>> ready;
  std::vector<PhaseTimes> phases;

 private:
  using Shape = std::tuple<const workloads::Schedule*, int, int, int, bool>;  // schedule, stages, chunks, micro-batches, pairs
  using Kind = std::tuple<const workloads::Schedule*, int, int, int, bool>;   // schedule, stages, chunks, micro-batches over stages, pairs
  std::map<Shape, std::unique_ptr<SlotOrder>> slot_orders_;
  std::map<Kind, const SlotOrder*> repeated_;  // that others can share
  std::map<const workloads::Schedule*, const PipelineFormula*> formulas_;
  std::size_t steps_held_ = 0;
};

struct StepTerms {
  double step_s = 0;
  std::span<const PhaseTimes> phases;  // [stage], in the workspace; none where they were not asked for
};

// `workload` may differ from the one that was compiled and priced in optimizer.zero_stage, batch.global and overlap.{pp, dp_gradients,
// dp_parameters}; `sync` is its own. stages_share: they leave NICs and host memories to one another when their steps end at different
// times; otherwise each has its share of all at once.
[[nodiscard]] StepTerms step_terms(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                                   const workloads::ReplicaSync& sync, const PlanCost& plan, PriceBook& prices, Workspace& workspace,
                                   bool by_phase = true, bool stages_share = true);

}  // namespace rehearse::sim
