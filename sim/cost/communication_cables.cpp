// What a price owes to the cables of networks that are no trees.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/cost/communication.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;
using workloads::GroupShape;
using workloads::Pace;
using workloads::Transfer;

using Rounds = std::vector<std::vector<Transfer>>;

std::vector<Transfer> everybody_to_everybody(int n) {
  std::vector<Transfer> all;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from != to) all.push_back({.from = from, .to = to, .bytes = 1});
    }
  }
  return all;
}

std::vector<Transfer> to_the_next(int n) {
  std::vector<Transfer> all;
  all.reserve(static_cast<std::size_t>(n));
  for (int from = 0; from < n; ++from) all.push_back({.from = from, .to = (from + 1) % n, .bytes = 1});
  return all;
}

// Of a pipeline: activations to the next stage, gradients to the one before.
std::vector<Transfer> to_neighbours(int stages, bool wraps) {
  std::vector<Transfer> all;
  for (int from = 0; from < (wraps ? stages : stages - 1); ++from) {
    const int to = (from + 1) % stages;
    all.insert(all.end(), {{.from = from, .to = to, .bytes = 1}, {.from = to, .to = from, .bytes = 1}});
  }
  return all;
}

bool crosses(const Transfer& t, const GroupShape& group) {
  return group.domain[static_cast<std::size_t>(t.from)] != group.domain[static_cast<std::size_t>(t.to)];
}

// The ring over all members between its domains, where every edge carries the same.
std::vector<Transfer> ring_between(const GroupShape& group, double bytes) {
  std::vector<Transfer> all = workloads::CollectiveRegistry::get("ring").volumes(CollectiveKind::all_gather, group, 1);
  for (Transfer& t : all) t.bytes = bytes;
  return all;
}

}  // namespace

// What a group has on its way at once, round by round, for a buffer (a message, what every two members exchange) of one byte.
Rounds CommunicationModel::at_once(const Communication& what, const CallPrice& price, const GroupShape& group) const {
  if (what.exchange) return {everybody_to_everybody(group.size)};
  if (what.group == GroupKind::pp) return {to_neighbours(group.size, pipeline_wraps_)};
  if (what.kind == CollectiveKind::send_recv) return {to_the_next(group.size)};
  const workloads::Collective& collective = *price.collective;
  const Pace pace = collective.pace(what.kind, group);
  if (pace == Pace::phases) return {ring_between(group, collective.closed_form(what.kind, group, 1).inter_bytes)};
  if (pace != Pace::rounds && !(by_rounds_ && pace == Pace::even && what.kind == CollectiveKind::all_to_all))
    return {collective.volumes(what.kind, group, 1)};
  Rounds rounds;
  for (workloads::Round& round : collective.rounds(what.kind, group, 1)) rounds.push_back(std::move(round.transfers));
  return rounds;
}

// Seconds per byte of the buffer when all groups of the kind communicate at once; of members that are no such group, those alone.
double CommunicationModel::cable_s(const Communication& what, const CallPrice& price, std::span<const int> members) const {
  const std::vector<int> of_grid = grid_.group(what.group, members.front());
  const bool known = what.group == GroupKind::pp || std::ranges::equal(members, of_grid);
  std::string name = fmt::format("{}; {} {} {}{}", place_, static_cast<int>(what.group), static_cast<int>(what.kind),
                                 what.exchange ? "exchange" : price.algorithm, by_rounds_ ? " by rounds" : "");
  if (!known) name += fmt::format("; {}", fmt::join(members, " "));
  return cables_->seconds(name, [&] {
    Cables::Rounds rounds;
    const auto add = [&](const std::vector<int>& group) {
      const GroupShape shape = this->shape(group);
      if (shape.domains() == 1) return;
      const Rounds own = at_once(what, price, shape);
      rounds.resize(std::max(rounds.size(), own.size()));
      const auto rank = [&](int member) { return group[static_cast<std::size_t>(member)]; };
      for (std::size_t i = 0; i < own.size(); ++i) {
        for (const Transfer& t : own[i]) {
          if (!crosses(t, shape)) continue;
          const int rail =
              t.rail_of < 0 ? -1 : rank(t.rail_of) % cluster_.gpus_per_node * cluster_.rails_per_node() / cluster_.gpus_per_node;
          rounds[i].push_back({rank(t.from), rank(t.to), rail, t.bytes});
        }
      }
    };
    if (known) {
      each_group(what.group, add);
    } else {
      add({members.begin(), members.end()});
    }
    return rounds;
  });
}

// Lowers the rate to the network to that at which the busiest cable has carried all when the port has.
void CommunicationModel::let_cables_limit(CallPrice& price, const Communication& what, std::span<const int> members) const {
  if (!cables_ || price.inter_bytes <= 0) return;
  const double per_byte_s = cable_s(what, price, members);
  // Of an exchange: as if every two members of different domains exchanged as much as the busiest port sends to each of them.
  double bytes = what.bytes;
  if (what.exchange) {
    const GroupShape group = shape(members);
    const auto others = std::ranges::count_if(group.domain, [&](int domain) { return domain != group.domain.front(); });
    bytes = price.inter_bytes / static_cast<double>(others);
  }
  if (per_byte_s > 0) price.limit_network(price.inter_bytes / (bytes * per_byte_s));
}

}  // namespace rehearse::sim
