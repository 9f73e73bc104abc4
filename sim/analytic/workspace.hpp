// What evaluating a step by formula needs room for.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

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

  std::vector<UnitCost> costs;  // of units whose calls other stages leave NICs to now and then
  std::vector<UnitTerms> units;
  std::vector<const UnitTerms*> order;
  std::vector<ChunkTerms> chunks;
  std::vector<StageTerms> stages;
  UnitWalks unit_walks;
  UnitSpans units_walked;
  std::vector<Pieces> forward, backward;
  PipelineTimes times;
  std::vector<double> no_hops, ends;
  std::vector<double> update_s, shown_update_s;  // each stage's, beside those that it shares its host's memory with
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

}  // namespace rehearse::sim
