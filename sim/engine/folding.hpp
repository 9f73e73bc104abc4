// Which ranks behave alike on the described cluster, so that one of each class need be simulated, and which wires carry alike.
#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/cost/communication.hpp"
#include "sim/engine/wiring.hpp"
#include "sim/result.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

// Groups of one kind, and which of them are alike.
struct GroupClasses {
  std::vector<std::vector<int>> groups;               // members
  std::vector<std::int32_t> group_of;                 // [rank]; -1: in none
  std::vector<std::uint64_t> colour_of;               // [group] equal ones behave alike
  std::map<std::uint64_t, std::vector<int>> classes;  // colour -> groups
};

struct Fold {
  workloads::Folding ranks;
  // Wires that several ranks share or that are not alike for all ranks: each to the one that stands for its class. Others belong to one
  // rank and are in the class of its like at the rank's representative.
  std::unordered_map<Wire, Wire> wires;
  std::map<workloads::GroupKind, GroupClasses> groups;
  std::vector<std::vector<int>> members;  // [simulated rank] all that it stands for
  std::vector<ToldApart> told_apart;
};

// Whether members of a group that are alike also do the same in every round of a collective, one shifted against the other: each sends and
// receives as much, over wires of its own, and as far. `tree` has a root, and Bruck's exchanges have no symmetry where domains end.
[[nodiscard]] bool rounds_rotate(const workloads::Communication& what, std::span<const int> members, const CommunicationModel& model,
                                 const Wiring& wiring);

// The coarsest equitable partition of ranks, groups and wires in which all ranks of a class have the same pipeline stage, pay the same for
// each of their groups and pipeline neighbours, suffer the same faults, and have group members and neighbours in the same classes; all
// groups of a class load wires of the same classes equally often; and all wires of a class are as wide, as often loaded by groups of
// each class, and slowed by the computations of ranks of the same classes. With fidelity `step` a member of a group whose members differ,
// or do different things in a round, is alike only to those in its place in other groups. Max-min fair rates are unique, so that equal
// wires and groups have equal rates, and one of each class, loaded as often as each of them is, has the same.
[[nodiscard]] Fold fold(const Job& job, const workloads::Compiled& compiled, const CommunicationModel& model);
// Of a step that communicates this and nothing else.
[[nodiscard]] Fold fold(const Job& job, const CommunicationModel& model, std::vector<workloads::Communication> calls);
// Every rank for itself.
[[nodiscard]] Fold unfolded(const Job& job);

}  // namespace rehearse::sim
