#include "topology/bisection.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace rehearse::topology {
namespace {

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;

struct FlowEdge {
  std::int64_t capacity = 0, residual = 0;  // whole numbers: exact, where floating-point excess might never drain
  FlowTraits::edge_descriptor reverse;
};

using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FlowEdge>;

struct Capacity {
  std::size_t from, to;
  double bytes_per_s;
};

// Push-relabel wants a reverse edge of capacity 0 beside every edge.
void add_flow_edge(FlowGraph& graph, const Capacity& edge, double unit) {
  const auto forth = add_edge(edge.from, edge.to, graph).first;
  const auto back = add_edge(edge.to, edge.from, graph).first;
  graph[forth].capacity = std::llround(edge.bytes_per_s / unit);
  graph[forth].reverse = back;
  graph[back].reverse = forth;
}

// In bytes per second, whole ones as long as all capacities together are a number that an integer holds.
double max_flow(const std::vector<Capacity>& edges, std::size_t vertices, std::size_t source, std::size_t sink) {
  double all = 0;
  for (const Capacity& edge : edges) all += edge.bytes_per_s;
  const double unit = std::max(1.0, all / 0x1p60);
  FlowGraph graph(vertices);
  for (const Capacity& edge : edges) add_flow_edge(graph, edge, unit);
  return unit * static_cast<double>(boost::push_relabel_max_flow(graph, source, sink,
                                                                 boost::capacity_map(get(&FlowEdge::capacity, graph))
                                                                     .residual_capacity_map(get(&FlowEdge::residual, graph))
                                                                     .reverse_edge_map(get(&FlowEdge::reverse, graph))
                                                                     .vertex_index_map(get(boost::vertex_index, graph))));
}

// Only switches are vertices of the flow graph. The nodes of a half are merged into source or sink: inside a half nothing limits, and no
// node carries the traffic of others.
class Halves {
 public:
  Halves(const Plan& plan, const Mask& mask) : plan_(plan), at_(plan.layout), mask_(mask), middle_(at_.nodes / 2) {
    const auto domains = at_.nic0 - at_.domain_switch0;
    switches_ = domains + (at_.host0 - at_.switch0);
    supply_.resize(switches_);
    demand_.resize(switches_);
  }

  Bisection measure() {
    std::vector<Capacity> edges;
    double injection = 0;
    for (LinkId id = 0; id < plan_.links.size(); ++id) {
      const Link& link = plan_.links[id];
      if (!mask_.alive(id)) continue;
      if (link.kind == LinkKind::trunk) edges.push_back({vertex(link.from), vertex(link.to), link.bandwidth_bytes_per_s});
      if (link.kind == LinkKind::nic) injection += add_port(link);
      if (link.kind == LinkKind::scale_up) add_domain_port(link);
    }
    for (std::size_t v = 0; v < switches_; ++v) {
      if (supply_[v] > 0) edges.push_back({switches_, v, supply_[v]});
      if (demand_[v] > 0) edges.push_back({v, switches_ + 1, demand_[v]});
    }
    return {max_flow(edges, switches_ + 2, switches_, switches_ + 1), injection};
  }

 private:
  // Domain switches first, then network switches.
  [[nodiscard]] std::size_t vertex(VertexId v) const {
    return v >= at_.switch0 ? at_.nic0 - at_.domain_switch0 + v - at_.switch0 : v - at_.domain_switch0;
  }

  // What the PCIe links of the GPUs behind a port let through, towards the NIC (0) or from it (1).
  [[nodiscard]] double pcie_rate(int node, int rail, LinkId direction) const {
    double sum = 0;
    for (int gpu = node * at_.gpus_per_node; gpu < node * at_.gpus_per_node + at_.gpus_in(node); ++gpu) {
      const LinkId link = at_.to_nic(gpu) + direction;
      if (at_.rail_of(gpu) == rail && mask_.alive(link)) sum += plan_.links[link].bandwidth_bytes_per_s;
    }
    return sum;
  }

  // Returns what the port adds to the injection of the lower half.
  double add_port(const Link& link) {
    const bool up = link.to >= at_.switch0;
    const int port = static_cast<int>((up ? link.from : link.to) - at_.nic0);
    const int node = port / at_.rails;
    if (up != (node < middle_)) return 0;
    double rate = link.bandwidth_bytes_per_s;
    if (at_.to_nic(0) != no_link) rate = std::min(rate, pcie_rate(node, port % at_.rails, up ? 0 : 1));
    (up ? supply_ : demand_)[vertex(up ? link.to : link.from)] += rate;
    return up ? link.bandwidth_bytes_per_s : 0;
  }

  void add_domain_port(const Link& link) {
    const bool up = at_.kind(link.from) == VertexKind::gpu;
    const VertexId there = up ? link.to : link.from;
    if (there < at_.domain_switch0 || there >= at_.nic0) return;
    const int node = at_.node_of(static_cast<int>(up ? link.from : link.to));
    if (up == (node < middle_)) (up ? supply_ : demand_)[vertex(there)] += link.bandwidth_bytes_per_s;
  }

  const Plan& plan_;
  const Layout& at_;
  const Mask& mask_;
  int middle_;
  std::size_t switches_ = 0;
  std::vector<double> supply_, demand_;
};

}  // namespace

Bisection measure_bisection(const Plan& plan, const Mask& mask) {
  if (plan.layout.nodes < 2) return {};
  return Halves(plan, mask).measure();
}

}  // namespace rehearse::topology
