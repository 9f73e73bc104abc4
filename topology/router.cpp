#include "topology/router.hpp"

#include <algorithm>
#include <limits>

#include "topology/flow_hash.hpp"

namespace rehearse::topology {
namespace {

constexpr std::uint16_t no_way = std::numeric_limits<std::uint16_t>::max();

}  // namespace

std::optional<Distance> Router::route(int from, int to, Distance distance, std::uint64_t flow_hash, int rail, std::vector<LinkId>& into) {
  const auto& at = plan_.layout;
  if (!mask_.alive_vertex(static_cast<VertexId>(from)) || !mask_.alive_vertex(static_cast<VertexId>(to))) return std::nullopt;
  if (distance == Distance::node) {
    if (at.mesh && over_mesh(from, to, into)) return Distance::node;
    if (at.node_switch && over_switch(at.node0, from, to, into)) return Distance::node;
  }
  if (distance != Distance::network && at.domains > 0 && over_switch(at.domain0, from, to, into)) {
    return at.node_switch || at.mesh ? Distance::supernode : distance;
  }
  if (at.rails > 0 && over_any_rail(from, to, flow_hash, rail, into)) return Distance::network;
  return mask_.any() ? detour(from, to, flow_hash, into) : std::nullopt;
}

bool Router::over_mesh(int from, int to, std::vector<LinkId>& into) const {
  const LinkId link = plan_.layout.mesh_link(from, to);
  if (!mask_.alive(link)) return false;
  into.push_back(link);
  return true;
}

bool Router::over_switch(LinkId ports, int from, int to, std::vector<LinkId>& into) const {
  const LinkId up = ports + 2 * static_cast<LinkId>(from);
  const LinkId down = ports + 2 * static_cast<LinkId>(to) + 1;
  if (!mask_.alive(up) || !mask_.alive(down)) return false;
  into.push_back(up);
  into.push_back(down);
  return true;
}

// When rail `rail` is broken somewhere on the way, the other rails are tried, beginning at one chosen by the flow so that displaced flows
// spread.
bool Router::over_any_rail(int from, int to, std::uint64_t flow_hash, int rail, std::vector<LinkId>& into) {
  if (over_rail(from, to, flow_hash, rail, into)) return true;
  const int others = plan_.layout.rails - 1;
  if (!mask_.any() || others == 0) return false;
  const int start = static_cast<int>(pick(flow_hash, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(others)));
  for (int k = 0; k < others; ++k) {
    if (over_rail(from, to, flow_hash, (rail + 1 + (start + k) % others) % (others + 1), into)) return true;
  }
  return false;
}

bool Router::over_rail(int from, int to, std::uint64_t flow_hash, int rail, std::vector<LinkId>& into) {
  const auto& at = plan_.layout;
  const LinkId out = at.rail_up(at.node_of(from), rail);
  const LinkId in = at.rail_up(at.node_of(to), rail) + 1;
  const LinkId pcie_out = at.to_nic(from);
  const bool pcie = pcie_out != no_link;
  const LinkId pcie_in = pcie ? at.to_nic(to) + 1 : no_link;
  if (!mask_.alive(out) || !mask_.alive(in) || (pcie && (!mask_.alive(pcie_out) || !mask_.alive(pcie_in)))) return false;

  const std::size_t before = into.size();
  if (pcie) into.push_back(pcie_out);
  into.push_back(out);
  if (!between_switches(plan_.links[out].to - at.switch0, plan_.links[in].from - at.switch0, flow_hash, into)) {
    into.resize(before);
    return false;
  }
  into.push_back(in);
  if (pcie) into.push_back(pcie_in);
  return true;
}

// Walks down the distances; among the next hops that lie on a shortest path, those of the lowest order, ECMP picks one by the flow.
bool Router::between_switches(std::uint32_t from, std::uint32_t to, std::uint64_t flow_hash, std::vector<LinkId>& into) {
  if (from == to) return true;
  const Distances& left = distances_to(to);
  if (left[from] == no_way) return false;
  const auto& graph = plan_.switches;
  for (std::uint32_t at = from; at != to;) {
    candidates_.clear();
    std::uint8_t order = std::numeric_limits<std::uint8_t>::max();
    const auto [begin, end] = out_edges(at, graph);
    for (auto e = begin; e != end; ++e) {
      const Hop& hop = graph[*e];
      if (left[target(*e, graph)] + hop.weight != left[at] || hop.order > order || !mask_.alive(hop.link)) continue;
      if (hop.order < order) candidates_.clear();
      order = hop.order;
      candidates_.push_back(hop.link);
    }
    into.push_back(candidates_[pick(flow_hash, at, static_cast<std::uint32_t>(candidates_.size()))]);
    at = plan_.links[into.back()].to - plan_.layout.switch0;
  }
  return true;
}

const Router::Distances& Router::distances_to(std::uint32_t destination) {
  auto& kept = towards_[destination];
  if (kept.empty()) kept = measure_switches(destination);
  return kept;
}

// Breadth-first search backwards from the destination, with one queue per distance since hops have small integer weights (Dial 1969).
Router::Distances Router::measure_switches(std::uint32_t destination) const {
  const auto& graph = plan_.switches;
  Distances distance(num_vertices(graph), no_way);
  std::vector<std::vector<std::uint32_t>> at_distance(1, {destination});
  distance[destination] = 0;
  for (std::size_t d = 0; d < at_distance.size() && d < no_way; ++d) {
    for (std::size_t i = 0; i < at_distance[d].size(); ++i) {
      const std::uint32_t here = at_distance[d][i];
      if (distance[here] != d) continue;
      const auto [begin, end] = out_edges(here, graph);
      for (auto e = begin; e != end; ++e) {
        const auto other = target(*e, graph);
        const std::size_t through = d + graph[*e].weight;
        if (through >= distance[other] || !mask_.alive(plan_.reverse_trunk(graph[*e].link))) continue;
        distance[other] = static_cast<std::uint16_t>(through);
        if (at_distance.size() <= through) at_distance.resize(through + 1);
        at_distance[through].push_back(other);
      }
    }
  }
  return distance;
}

}  // namespace rehearse::topology
