#include "sim/cost/price_book.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace rehearse::sim {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;

// Groups of ranks whose other coordinates are equal are the same set of distances counted from different ranks: where those ranks sit alike
// in their domains, so do the groups. Mirrored pipelines and experts whose grid has other stages pair ranks at several distances.
PriceBook::PriceBook(const CommunicationModel& model, const workloads::RankGrid& grid, int stages, Calls* shared)
    : model_(model), grid_(grid), known_(shared == nullptr ? own_ : *shared) {
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = first_rank(stage);
    const auto alike = [&](int other) { return grid.moves_with_stages() && model.sit_alike(first_rank(other), rank); };
    int first = 0;
    while (first < stage && !alike(first)) ++first;
    places_.push_back(first);
  }
}

std::size_t PriceBook::Hash::operator()(const Call& call) const {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio: Knuth's multiplicative hash
  const std::uint64_t which = (static_cast<std::uint64_t>(call.place) << 18) | (static_cast<std::uint64_t>(call.alone) << 17) |
                              (static_cast<std::uint64_t>(call.to_next) << 16) | (static_cast<std::uint64_t>(call.kind) << 8) |
                              static_cast<std::uint64_t>(call.group);
  const std::uint64_t mixed = (std::bit_cast<std::uint64_t>(call.bytes) ^ (which * odd)) * odd;
  return mixed ^ (mixed >> 32);
}

const PriceBook::Times& PriceBook::times(CollectiveKind kind, GroupKind group, double bytes, int stage, bool alone) {
  alone = alone || leaves(group);
  const auto [it, added] = known_.try_emplace({kind, group, place(stage), false, bytes, alone});
  if (added) {
    const Communication what{"", kind, group, bytes, workloads::Pass::forward};
    it->second = slowest(what, stage, alone);
  }
  return it->second;
}

const std::vector<double>& PriceBook::stages_at_hosts() {
  if (!stages_at_hosts_) stages_at_hosts_ = model_.stages_at_hosts();
  return *stages_at_hosts_;
}

PriceBook::Times PriceBook::slowest(const Communication& what, int stage, bool alone) {
  Times slowest;
  for (const int leader : leaders(what.group, stage)) {
    const CallPrice of_all = model_.price(what, grid_.group(what.group, leader)), price = alone ? of_all.alone() : of_all;
    if (price.seconds() > slowest.seconds) slowest = {price.seconds(), price.ports()};
  }
  return slowest;
}

const std::vector<int>& PriceBook::leaders(GroupKind group, int stage) {
  const auto [it, added] = leaders_.try_emplace({group, stage});
  std::vector<int>& found = it->second;
  if (!added) return found;
  found.push_back(first_rank(stage));
  const bool network = static_cast<int>(group) < workloads::network_group_kinds && group != GroupKind::pp;
  if (model_.groups_lie_alike() || !network) return found;
  std::vector<int> fronts{grid_.group(group, found.front()).front()};
  for (int rank = found.front() + 1; rank < grid_.size(); ++rank) {
    const auto alike = [&](int leader) { return grid_.moves_with_stages() && model_.sit_alike(leader, rank); };
    if (grid_.coordinates(rank).pp != stage || std::ranges::any_of(found, alike)) continue;
    const int front = grid_.group(group, rank).front();  // of another stage, where pipelines are mirrored
    if (std::ranges::find(fronts, front) != fronts.end()) continue;
    fronts.push_back(front);
    found.push_back(rank);
  }
  return found;
}

PriceBook::Times PriceBook::times(const Communication& what, int stage) {
  if (what.exchange) return slowest(what, stage, leaves(what.group));
  return times(what.kind, what.group, what.bytes, stage);
}

const PriceBook::Times& PriceBook::hop(double bytes, int stage) {
  const bool leads_back = stage + 1 == static_cast<int>(places_.size());
  const int from = leads_back ? stage : place(stage);
  const auto [it, added] = known_.try_emplace({CollectiveKind::send_recv, GroupKind::pp, from, true, bytes});
  if (added) it->second = slowest_hop(bytes, stage);
  return it->second;
}

// Hops over equally many levels of the cluster cost the same.
PriceBook::Times PriceBook::slowest_hop(double bytes, int stage) const {
  const Communication message{"", CollectiveKind::send_recv, GroupKind::pp, bytes, workloads::Pass::forward};
  std::array<bool, 3> priced{};
  Times slowest;
  workloads::Coordinates at{0, 0, 0, stage};
  for (at.dp = 0; at.dp < grid_.replicas(); ++at.dp) {
    const int from = grid_.rank(at), to = grid_.next_stage(from);
    bool& known = priced[model_.levels_between(from, to)];
    if (known) continue;
    known = true;
    const CallPrice price = model_.price(message, std::array{from, to});
    if (price.seconds() > slowest.seconds) slowest = {price.seconds(), price.ports()};
  }
  return slowest;
}

}  // namespace rehearse::sim
