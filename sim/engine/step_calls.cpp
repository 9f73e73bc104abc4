#include "sim/engine/step_calls.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace rehearse::sim {

using workloads::Communication;
using workloads::GroupKind;

namespace {

constexpr std::array dense_kinds{GroupKind::tp,        GroupKind::cp,    GroupKind::dp_cp,
                                 GroupKind::embedding, GroupKind::shard, GroupKind::replicas};
constexpr std::array expert_kinds{GroupKind::ep, GroupKind::etp, GroupKind::edp};

}  // namespace

StepCalls::StepCalls(const System& system, const workloads::Workload& workload, const CommunicationModel& of,
                     std::vector<Communication> all)
    : grid(workloads::rank_grid(workload)), model(of), wiring(system), calls(std::move(all)) {
  for (const GroupKind kind : dense_kinds) list_groups(kind);
  if (workload.model.moe) std::ranges::for_each(expert_kinds, [this](GroupKind kind) { list_groups(kind); });
  list_patterns();
}

// Of groups of one rank there is nothing to tell. Middle stages name the end ranks of their pipeline as their embedding group without being
// members: no group of theirs.
void StepCalls::list_groups(GroupKind kind) {
  GroupClasses list;
  list.group_of.assign(static_cast<std::size_t>(grid.size()), -1);
  for (int rank = 0; rank < grid.size(); ++rank) {
    if (list.group_of[static_cast<std::size_t>(rank)] >= 0) continue;
    std::vector<int> members = grid.group(kind, rank);
    if (members.size() < 2 || std::ranges::find(members, rank) == members.end()) continue;
    for (const int member : members) list.group_of[static_cast<std::size_t>(member)] = static_cast<std::int32_t>(list.groups.size());
    list.groups.push_back(std::move(members));
  }
  if (!list.groups.empty()) groups[kind] = std::move(list);
}

void StepCalls::list_patterns() {
  std::set<std::tuple<GroupKind, workloads::CollectiveKind, std::string, bool>> seen;
  for (const Communication& what : calls) {
    const auto of_kind = groups.find(what.group);
    if (of_kind == groups.end()) continue;
    const std::string algorithm = algorithm_and_protocol(model.price(what, of_kind->second.groups.front()));
    if (seen.emplace(what.group, what.kind, algorithm, what.exchange != nullptr).second) patterns[what.group].push_back(what);
  }
}

std::vector<Load> StepCalls::loads(const Communication& what, const std::vector<int>& members) const {
  return loads_of(what, model.price(what, members), members, model, wiring, 0);
}

// Groups that lie alike in their domains are asked once.
bool StepCalls::all_aligned() const {
  for (const auto& [kind, some] : patterns) {
    for (const Communication& what : some) {
      if (what.exchange) continue;  // each member loads its own ports alone
      std::set<Colour> asked;
      for (const std::vector<int>& members : groups.at(kind).groups) {
        if (asked.insert(position_in_domain(members)).second && !aligned(loads(what, members), members)) return false;
      }
    }
  }
  for (int rank = 0; rank < grid.size(); ++rank) {
    const int next = grid.next_stage(rank);
    if (!wiring.same_domain(rank, next) && wiring.rail_of(rank) != wiring.rail_of(next)) return false;
  }
  return true;
}

Colour StepCalls::position_in_domain(const std::vector<int>& members) const {
  Colour colour = static_cast<Colour>(members.front() % wiring.domain_gpus());
  for (const int member : members) colour = chain(colour, static_cast<std::uint64_t>(member - members.front()));
  return colour;
}

bool StepCalls::aligned(const std::vector<Load>& loads, const std::vector<int>& members) const {
  std::vector<int> by_rank = members;
  std::ranges::sort(by_rank);
  for (const Load& load : loads) {
    std::map<Wire, std::pair<std::size_t, int>> of_kind;  // as the first member's: how many members, and how often
    for (const auto& [wire, times] : load.wires) {
      if (!wiring.port_kind(wire)) continue;
      const int owner = wiring.owner(wire);
      if (!std::ranges::binary_search(by_rank, owner)) return false;
      auto& [owners, often] = of_kind.try_emplace(wiring.of_owner(wire, members.front()), 0, times).first->second;
      ++owners;
      if (often != times) return false;
    }
    for (const auto& [kind, entry] : of_kind) {
      if (entry.first != members.size()) return false;
    }
  }
  return true;
}

std::map<GroupKind, std::vector<bool>> StepCalls::rotating() const {
  std::map<GroupKind, std::vector<bool>> all;
  for (const auto& [kind, list] : groups) {
    std::vector<bool>& rotating = all[kind];
    std::map<Colour, bool> asked;
    for (const std::vector<int>& members : list.groups) {
      const auto [it, added] = asked.try_emplace(position_in_domain(members), false);
      if (added || wiring.has_trunks()) it->second = rotates(kind, members);
      rotating.push_back(it->second);
    }
  }
  return all;
}

bool StepCalls::rotates(GroupKind kind, const std::vector<int>& members) const {
  const auto some = patterns.find(kind);
  return some == patterns.end() ||
         std::ranges::all_of(some->second, [&](const Communication& what) { return rounds_rotate(what, members, model, wiring); });
}

bool rounds_rotate(const Communication& what, std::span<const int> members, const CommunicationModel& model, const Wiring& wiring) {
  const CallPrice price = model.price(what, members);
  if (what.exchange || what.kind == workloads::CollectiveKind::broadcast) return false;
  if (flows_in_every_round(what, price, members, model)) return true;
  if (price.kind == CallKind::none) return true;
  const bool alike =
      price.collective == nullptr ? price.kind == CallKind::send : price.collective->rotates(what.kind, model.shape(members));
  if (!alike) return false;
  std::map<bool, double> latency_s;
  for (const workloads::Transfer& t : messages_of(what, price, members, model)) {
    const int from = members[static_cast<std::size_t>(t.from)], to = members[static_cast<std::size_t>(t.to)];
    const double latency = model.latency_s(from, to);
    if (latency_s.try_emplace(wiring.same_domain(from, to), latency).first->second != latency) return false;
    for (const auto& [wire, times] : load_of_message(from, to, 1, -1, wiring, 0).wires) {
      if (!wiring.port_kind(wire)) return false;
    }
  }
  return true;
}

}  // namespace rehearse::sim
