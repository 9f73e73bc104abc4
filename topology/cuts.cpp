// Fabric::cuts: bisection, and the switches whose loss alone separates GPUs.
#include <algorithm>
#include <boost/graph/biconnected_components.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <numeric>

#include "topology/bisection.hpp"
#include "topology/fabric_impl.hpp"

namespace rehearse::topology {
namespace {

using TrafficGraph = boost::compressed_sparse_row_graph<boost::directedS>;

TrafficGraph traffic_graph(const Plan& plan, const Mask& mask) {
  std::vector<std::pair<VertexId, VertexId>> ends;
  for (const auto& edge : traffic_edges(plan, mask)) ends.emplace_back(edge.from, edge.to);
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), plan.layout.vertices};
}

// The depth-first forest of the search for articulation points. A child c of v with low[c] >= found[v] hangs on v alone (Tarjan 1972).
struct Forest {
  std::vector<std::size_t> found, low, parent;
  std::vector<std::size_t> articulation;
};

Forest search(const TrafficGraph& graph) {
  const std::size_t n = num_vertices(graph);
  Forest f{std::vector<std::size_t>(n), std::vector<std::size_t>(n), std::vector<std::size_t>(n), {}};
  std::iota(f.parent.begin(), f.parent.end(), std::size_t{0});
  const auto index = get(boost::vertex_index, graph);
  boost::articulation_points(graph, std::back_inserter(f.articulation),
                             boost::discover_time_map(boost::make_iterator_property_map(f.found.begin(), index))
                                 .lowpoint_map(boost::make_iterator_property_map(f.low.begin(), index))
                                 .predecessor_map(boost::make_iterator_property_map(f.parent.begin(), index)));
  return f;
}

std::vector<std::size_t> by_discovery(const Forest& f) {
  std::vector<std::size_t> order(f.found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return f.found[a] < f.found[b]; });
  return order;
}

struct Around {
  std::size_t root = 0;     // of the vertex's tree
  std::size_t below = 0;    // GPUs in the vertex's subtree, itself included
  std::size_t hanging = 0;  // of these, GPUs that only this vertex links to the rest
  int parts = 0;            // groups of GPUs that fall apart when the vertex is lost
};

std::vector<Around> look_around(const Forest& f, std::size_t gpus) {
  const auto order = by_discovery(f);
  const std::vector<std::size_t> latest_first(order.rbegin(), order.rend());
  std::vector<Around> at(f.found.size());
  for (const auto v : order) at[v].root = f.parent[v] == v ? v : at[f.parent[v]].root;
  for (const auto v : latest_first) {
    const auto p = f.parent[v];
    at[v].below += v < gpus ? 1 : 0;
    if (p == v) continue;
    at[p].below += at[v].below;
    if (f.low[v] < f.found[p] || at[v].below == 0) continue;
    at[p].hanging += at[v].below;
    ++at[p].parts;
  }
  for (const auto v : order) {
    const bool others = at[at[v].root].below > at[v].hanging + (v < gpus ? 1 : 0);
    at[v].parts += others ? 1 : 0;
  }
  return at;
}

std::vector<std::string> single_points(const Plan& plan, const Mask& mask) {
  const auto forest = search(traffic_graph(plan, mask));
  const auto around = look_around(forest, static_cast<std::size_t>(plan.layout.gpus));
  std::vector<std::string> names;
  for (const auto v : forest.articulation) {
    const auto kind = plan.layout.kind(static_cast<VertexId>(v));
    const bool is_switch = kind == VertexKind::scale_up_switch || kind == VertexKind::network_switch;
    if (is_switch && around[v].parts > 1) names.push_back(plan.name(static_cast<VertexId>(v)));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

CutReport Fabric::cuts() const {
  const auto bisection = measure_bisection(*impl_->plan, impl_->mask);
  return {bisection.flow_bytes_per_s, bisection.injection_bytes_per_s, single_points(*impl_->plan, impl_->mask)};
}

}  // namespace rehearse::topology
