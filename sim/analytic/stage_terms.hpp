// Numbers of a plan's units and stages with what the replicas exchange.
#pragma once

#include "sim/analytic/crowd.hpp"
#include "sim/analytic/plan_cost.hpp"
#include "sim/analytic/workspace.hpp"

namespace rehearse::sim {

[[nodiscard]] ReplicaRules replica_rules(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                                         const workloads::ReplicaSync& sync, const ContentionPair& pair, bool ports_meet);

// Fills units, order, chunks and stages of the workspace. crowds: [unit], or none, where all are at work at once.
void fill_stages(const System& system, const workloads::Workload& workload, const ReplicaRules& rules, const PlanCost& plan,
                 PriceBook& prices, std::span<const Crowd> crowds, Workspace& workspace);

}  // namespace rehearse::sim
