// Which ranks behave alike on the described cluster, so that one of each class need be simulated, and which wires carry alike.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "sim/cost/communication.hpp"
#include "sim/engine/step_calls.hpp"
#include "sim/engine/wiring.hpp"
#include "sim/result.hpp"
#include "sim/system.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

struct Fold {
  workloads::Folding ranks;
  // Wires that several ranks share or that are not alike for all ranks: each to the one that stands for its class. Others belong to one
  // rank and are in the class of its like at the rank's representative.
  std::unordered_map<Wire, Wire> wires;
  std::map<workloads::GroupKind, GroupClasses> groups;
  std::vector<std::vector<int>> members;  // [simulated rank] all that it stands for
  std::vector<ToldApart> told_apart;
};

// The coarsest equitable partition of ranks, groups and wires in which all ranks of a class have the same pipeline stage, pay the same for
// each of their groups and pipeline neighbours, suffer the same faults, and have group members and neighbours in the same classes; all
// groups of a class load wires of the same classes equally often; and all wires of a class are as wide, as often loaded by groups of
// each class, and slowed by the computations of ranks of the same classes. With fidelity `step` a member of a group whose members differ,
// or do different things in a round, is alike only to those in its place in other groups. Max-min fair rates are unique, so that equal
// wires and groups have equal rates, and one of each class, loaded as often as each of them is, has the same.
[[nodiscard]] Fold fold(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled,
                        const CommunicationModel& model);
// Of a step that communicates this and nothing else.
[[nodiscard]] Fold fold(const System& system, const workloads::Workload& workload, const CommunicationModel& model,
                        std::vector<workloads::Communication> calls);
// Every rank for itself.
[[nodiscard]] Fold unfolded(const System& system, const workloads::Workload& workload);

}  // namespace rehearse::sim
