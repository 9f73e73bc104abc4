// What oversubscribed trunks leave of a GPU's share of its node's NICs.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "sim/cost/communication.hpp"

namespace rehearse::sim {
namespace {

bool in_one_leaf(std::span<const int> members, int gpus_per_leaf) {
  return std::ranges::all_of(members, [&](int rank) { return rank / gpus_per_leaf == members.front() / gpus_per_leaf; });
}

}  // namespace

using workloads::GroupKind;

// Flows out of the busiest leaf (or pod) per GPU in it, when every group of this kind communicates with its neighbours at once; reduced: of
// each group and channel one, as where switches add up what the members under them send; shifts: one message.
double CommunicationModel::busiest_crossing(GroupKind kind, const Level& level, Crossing crossing) const {
  const int gpus_per_leaf = level.nodes * cluster_.gpus_per_node;
  if (grid_.size() <= gpus_per_leaf) return 0;
  const std::vector<int> first = grid_.group(kind, 0);
  if (first.size() < 2) return 0;
  std::vector<int> flows(static_cast<std::size_t>((grid_.size() - 1) / gpus_per_leaf + 1));  // [leaf]
  const auto add = [&](const std::vector<int>& members) {
    if (in_one_leaf(members, gpus_per_leaf)) return;
    const int channels = kind == GroupKind::pp || crossing == Crossing::shifts ? 1 : ring_channels(members);  // stages send one message
    const bool reduced = crossing == Crossing::reduced;
    std::set<int> counted;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int from = members[i] / gpus_per_leaf, to = members[i + 1 < members.size() ? i + 1 : 0] / gpus_per_leaf;
      if (from != to && (!reduced || counted.insert(from).second)) flows[static_cast<std::size_t>(from)] += channels;
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

int CommunicationModel::ring_channels(std::span<const int> members) const {
  std::vector<int> domains;
  domains.reserve(members.size());
  for (const int rank : members) domains.push_back(domain_of(rank));
  if (!std::ranges::is_sorted(domains)) std::ranges::sort(domains);
  std::ptrdiff_t fewest = std::ssize(domains);
  for (auto first = domains.begin(); first != domains.end();) {
    const auto last = std::find_if(first, domains.end(), [&](int domain) { return domain != *first; });
    fewest = std::min(fewest, last - first);
    first = last;
  }
  return static_cast<int>(fewest);
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
