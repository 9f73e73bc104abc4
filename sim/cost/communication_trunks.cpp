// What oversubscribed trunks leave of a GPU's share of its node's NICs.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "sim/cost/communication.hpp"
#include "workloads/collectives/layout.hpp"

namespace rehearse::sim {
namespace {

bool in_one_leaf(std::span<const int> members, int gpus_per_leaf) {
  return std::ranges::all_of(members, [&](int rank) { return rank / gpus_per_leaf == members.front() / gpus_per_leaf; });
}

}  // namespace

using workloads::GroupKind;

// Who sends to whom when a group communicates with its neighbours: in shifts, and between stages, each member to the next; in rings and
// trees each channel from node to node, as Layout lays them out, in whatever order the members come.
std::vector<CommunicationModel::Crosser> CommunicationModel::crossers(GroupKind kind, Crossing crossing,
                                                                      const std::vector<int>& members) const {
  std::vector<Crosser> all;
  if (kind == GroupKind::pp || crossing == Crossing::shifts) {
    for (std::size_t i = 0; i < members.size(); ++i) all.push_back({members[i], members[(i + 1) % members.size()], 0});
    return all;
  }
  const workloads::collectives::Layout layout(shape(members));
  const auto rank = [&](int position) { return members[static_cast<std::size_t>(layout.member(position))]; };
  for (int here = 0; layout.domains() > 1 && here < layout.domains(); ++here) {
    const int next = (here + 1) % layout.domains();
    for (int channel = 0; channel < layout.smallest(); ++channel)
      all.push_back({rank(layout.leaving(here, next, channel)), rank(layout.first(next) + channel), channel});
  }
  return all;
}

// Flows out of the busiest leaf (or pod) per GPU in it, when every group of this kind communicates with its neighbours at once; reduced: of
// each group and channel one, as where switches add up what the members under them send; shifts: one message.
double CommunicationModel::busiest_crossing(GroupKind kind, const Level& level, Crossing crossing) const {
  const int gpus_per_leaf = level.nodes * cluster_.gpus_per_node;
  if (grid_.size() <= gpus_per_leaf) return 0;
  const std::vector<int> first = grid_.group(kind, 0);
  if (first.size() < 2) return 0;
  std::vector<int> flows(static_cast<std::size_t>((grid_.size() - 1) / gpus_per_leaf + 1));  // [leaf]
  const auto leaf_of = [&](int rank) { return rank / gpus_per_leaf; };
  const auto add = [&](const std::vector<int>& members) {
    if (in_one_leaf(members, gpus_per_leaf)) return;
    std::set<std::pair<int, int>> counted;  // leaf and channel
    for (const Crosser& one : crossers(kind, crossing, members)) {
      const int from = leaf_of(one.from);
      if (from == leaf_of(one.to)) continue;
      if (crossing != Crossing::reduced || counted.insert({from, one.channel}).second) ++flows[static_cast<std::size_t>(from)];
    }
  };
  if (level.groups_lie_alike && grid_.spans_dimensions(kind)) {  // the first leaf is as busy as any, and a group in it as any other
    add(first);
    const auto in_leaf = std::ranges::count_if(kind == GroupKind::embedding ? grid_.group(GroupKind::pp, 0) : first,
                                               [&](int rank) { return rank < gpus_per_leaf; });
    const auto groups_in_leaf = gpus_per_leaf / in_leaf;
    return static_cast<double>(flows.front() * groups_in_leaf) / gpus_per_leaf;
  }
  each_group(kind, add);
  return static_cast<double>(*std::ranges::max_element(flows)) / gpus_per_leaf;
}

double CommunicationModel::trunk_factor(GroupKind kind, Crossing crossing) const {
  double factor = std::numeric_limits<double>::infinity();
  for (const Level& level : levels_) {
    const double flows = busiest_crossing(kind, level, crossing);
    if (flows > 0) factor = std::min(factor, 1 / (level.oversubscription * flows));
  }
  return factor;
}

// Of an exchange: what a port of the fullest leaf (or pod) has to carry on the average, for each byte of the busiest port of all.
double CommunicationModel::part_in_trunks(const workloads::PortLoads& loads, std::span<const int> members) const {
  const double most = loads.most_inter();
  if (levels_.empty() || most <= 0) return 1;
  double part = 0;
  for (const Level& level : levels_) {
    struct Leaf {
      double out = 0, in = 0;
      int ports = 0;
    };
    std::map<int, Leaf> leaves;
    for (std::size_t i = 0; i < members.size(); ++i) {
      Leaf& leaf = leaves[members[i] / (level.nodes * cluster_.gpus_per_node)];
      leaf.out += loads.inter_out[i];
      leaf.in += loads.inter_in[i];
      ++leaf.ports;
    }
    for (const auto& [at, leaf] : leaves) part = std::max(part, std::max(leaf.out, leaf.in) / leaf.ports / most);
  }
  return part;
}

}  // namespace rehearse::sim
