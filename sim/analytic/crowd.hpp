// Stages of a pipeline that gather, reduce, copy or make calls of their own for every micro-batch over NICs and links to the host that
// others use as well: how often they meet there.
#pragma once

#include <span>
#include <vector>

#include "sim/analytic/replica_cost.hpp"
#include "sim/cost/price_book.hpp"
#include "sim/system.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// Where stages can meet.
struct Meeting {
  bool at_nics = false, in_calls = false, at_hosts = false;  // what replicas exchange; a unit's own calls; copies
  [[nodiscard]] bool anywhere() const { return at_nics || in_calls || at_hosts; }
};
[[nodiscard]] Meeting meeting_of(const System& system, const ReplicaRules& rules, const PlanCost& plan, const PriceBook& prices);

// For which part of the time another stage is at work there; 1: always, as prices of all at once have it.
struct Crowd {
  double exchange = 1, calls = 1, copies = 1;
};
// [unit] Of a step that takes so long: of the other stages there in the mean, and of the stages that hold the unit. Copies of the two
// directions do not meet.
[[nodiscard]] std::vector<Crowd> crowds_of(const workloads::Workload& workload, const workloads::Compiled& compiled,
                                           const ReplicaRules& rules, const Meeting& meeting, const PlanCost& plan, PriceBook& prices,
                                           std::span<const StageTerms> stages, double step_s);

// The step follows from the crowd, and the crowd from the step: so many times one after the other, from a full crowd on.
constexpr int turns_of_crowd = 4;

}  // namespace rehearse::sim
