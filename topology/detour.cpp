// Routes around failures that no regular route survives: shortest paths over everything that is left, GPUs of other NICs included (as
// NCCL's PXN sends over a neighbour's NIC).
#include <algorithm>
#include <limits>
#include <utility>

#include "topology/flow_hash.hpp"
#include "topology/router.hpp"

namespace rehearse::topology {
namespace {

constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max();

}  // namespace

std::optional<Distance> Router::detour(int from, int to, std::uint64_t flow_hash, std::vector<LinkId>& into) {
  const auto source = static_cast<VertexId>(from);
  const auto destination = static_cast<VertexId>(to);
  if (detour_to_ != destination) measure_detour(destination);
  if (detour_distances_[source] == unreachable) return std::nullopt;
  for (VertexId at = source; at != destination;) {
    steps_.clear();
    const auto [begin, end] = out_edges(at, *traffic_);
    for (auto e = begin; e != end; ++e) {
      if (detour_distances_[target(*e, *traffic_)] + 1 == detour_distances_[at])
        steps_.emplace_back(target(*e, *traffic_), (*traffic_)[*e]);
    }
    const auto [next, link] = steps_[pick(flow_hash, at, static_cast<std::uint32_t>(steps_.size()))];
    if (link != no_link) into.push_back(link);
    at = next;
  }
  return reach(into);
}

// Hops to `destination` from everywhere, kept for the last destination asked for.
void Router::measure_detour(VertexId destination) {
  if (!traffic_) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
    std::vector<LinkId> ids;
    for (const auto& edge : traffic_edges(plan_, mask_)) {
      ends.emplace_back(edge.from, edge.to);
      ids.push_back(edge.link);
    }
    traffic_ =
        std::make_unique<TrafficGraph>(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), ids.begin(), plan_.layout.vertices);
  }
  detour_to_ = destination;
  detour_distances_.assign(plan_.layout.vertices, unreachable);
  detour_distances_[destination] = 0;
  std::vector<VertexId> queue{destination};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const auto [begin, end] = in_edges(queue[i], *traffic_);
    for (auto e = begin; e != end; ++e) {
      auto& distance = detour_distances_[source(*e, *traffic_)];
      if (distance != unreachable) continue;
      distance = detour_distances_[queue[i]] + 1;
      queue.push_back(source(*e, *traffic_));
    }
  }
}

Distance Router::reach(const std::vector<LinkId>& links) const {
  const auto& at = plan_.layout;
  const auto is_nic = [&](LinkId link) { return plan_.links[link].kind == LinkKind::nic; };
  const auto is_domain = [&](LinkId link) { return plan_.links[link].to >= at.domain_switch0 && plan_.links[link].to < at.nic0; };
  if (std::any_of(links.begin(), links.end(), is_nic)) return Distance::network;
  return std::any_of(links.begin(), links.end(), is_domain) ? Distance::supernode : Distance::node;
}

}  // namespace rehearse::topology
