// What a step communicates over which groups of ranks, each kind of call once, and what is symmetric about it on the described cluster.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/cost/communication.hpp"
#include "sim/engine/call_loads.hpp"
#include "sim/engine/colour.hpp"
#include "sim/engine/wiring.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {

// Groups of one kind, and which of them are alike.
struct GroupClasses {
  std::vector<std::vector<int>> groups;               // members
  std::vector<std::int32_t> group_of;                 // [rank]; -1: in none
  std::vector<std::uint64_t> colour_of;               // [group] equal ones behave alike
  std::map<std::uint64_t, std::vector<int>> classes;  // colour -> groups
};

// Whether members of a group that are alike also do the same in every round of a collective, one shifted against the other: each sends and
// receives as much, over wires of its own, and as far. `tree` has a root, and Bruck's exchanges have no symmetry where domains end.
[[nodiscard]] bool rounds_rotate(const workloads::Communication& what, std::span<const int> members, const CommunicationModel& model,
                                 const Wiring& wiring);

struct StepCalls {
  // The model must outlive it.
  StepCalls(const System& system, const workloads::Workload& workload, const CommunicationModel& model,
            std::vector<workloads::Communication> calls);

  [[nodiscard]] std::vector<Load> loads(const workloads::Communication& what, const std::vector<int>& members) const;
  // Whether what each group puts on its members' ports is the same for every member: then ports are as alike as their owners.
  [[nodiscard]] bool all_aligned() const;
  // Of each kind, whether the rounds of all its calls rotate in the group.
  [[nodiscard]] std::map<workloads::GroupKind, std::vector<bool>> rotating() const;

  workloads::RankGrid grid;
  const CommunicationModel& model;
  Wiring wiring;
  std::vector<workloads::Communication> calls;
  std::map<workloads::GroupKind, GroupClasses> groups;                             // of two ranks or more, without their classes
  std::map<workloads::GroupKind, std::vector<workloads::Communication>> patterns;  // of calls that load the same wires equally, one

 private:
  void list_groups(workloads::GroupKind kind);
  void list_patterns();
  [[nodiscard]] Colour position_in_domain(const std::vector<int>& members) const;
  [[nodiscard]] bool aligned(const std::vector<Load>& loads, const std::vector<int>& members) const;
  [[nodiscard]] bool rotates(workloads::GroupKind kind, const std::vector<int>& members) const;
};

}  // namespace rehearse::sim
