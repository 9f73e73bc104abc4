#include "sim/cli/fabric_text.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <stdexcept>

#include "config/quantity.hpp"
#include "sim/report/table.hpp"

namespace rehearse::cli {
namespace {

using config::Dimension;
using config::human_quantity;
using sim::Align;
using topology::Fabric;

constexpr std::uint64_t example_flow = 0;  // flow hash of the routes shown and checked

constexpr std::string_view vertex_kinds[] = {"GPU", "scale-up switch", "NIC", "network switch", "host", "storage"};
constexpr std::string_view link_kinds[] = {"scale-up", "PCIe", "NIC", "trunk", "host memory", "storage"};
constexpr std::string_view distances[] = {"itself", "same node", "same supernode", "network"};

template <std::size_t n, class Kind>
std::string kind_name(const std::string_view (&names)[n], Kind kind) {
  return std::string(names[static_cast<std::size_t>(kind)]);
}

sim::Table vertex_table(const Fabric& fabric) {
  std::map<topology::VertexKind, int> counts;
  for (topology::VertexId v = 0; v < fabric.vertex_count(); ++v) ++counts[fabric.vertex_kind(v)];
  sim::Table table{.columns = {{"vertices", Align::left}, {"count"}}};
  for (const auto& [kind, count] : counts) table.rows.push_back({kind_name(vertex_kinds, kind), fmt::format("{}", count)});
  return table;
}

// Links of one kind and bandwidth, both directions counted.
sim::Table link_table(const Fabric& fabric) {
  std::map<std::pair<topology::LinkKind, double>, int> counts;
  for (const topology::Link& link : fabric.links()) ++counts[{link.kind, link.bandwidth_bytes_per_s}];
  sim::Table table{.columns = {{"links", Align::left}, {"count"}, {"bandwidth of one"}}};
  for (const auto& [key, count] : counts) {
    table.rows.push_back({kind_name(link_kinds, key.first), fmt::format("{}", count), human_quantity(key.second, Dimension::bandwidth)});
  }
  return table;
}

double bottleneck(const Fabric& fabric, const topology::Route& route) {
  double bandwidth = std::numeric_limits<double>::infinity();
  for (const topology::LinkId link : route.links) bandwidth = std::min(bandwidth, fabric.links()[link].bandwidth_bytes_per_s);
  return bandwidth;
}

// The ends are named even where the hop between a GPU and its NIC is no link of its own.
std::string path_text(const Fabric& fabric, int gpu, const topology::Route& route) {
  std::vector<topology::VertexId> path{fabric.gpu_vertex(0)};
  const auto visit = [&](topology::VertexId vertex) {
    if (path.back() != vertex) path.push_back(vertex);
  };
  visit(fabric.links()[route.links.front()].from);
  for (const topology::LinkId link : route.links) visit(fabric.links()[link].to);
  visit(fabric.gpu_vertex(gpu));
  std::vector<std::string> names;
  names.reserve(path.size());
  for (const topology::VertexId vertex : path) names.push_back(fabric.vertex_name(vertex));
  return fmt::format("{}", fmt::join(names, " > "));
}

// The neighbour, the same and the next GPU of the next node, and the last GPU: from near to far.
std::set<int> example_destinations(const Fabric& fabric) {
  const int per_node = fabric.cluster().gpus_per_node;
  std::set<int> gpus;
  for (const int gpu : {1, per_node, per_node + 1, fabric.gpu_count() - 1}) {
    if (gpu > 0 && gpu < fabric.gpu_count()) gpus.insert(gpu);
  }
  return gpus;
}

sim::Table route_table(const Fabric& fabric) {
  sim::Table table{
      .columns = {{"from gpu0 to", Align::left}, {"distance", Align::left}, {"latency"}, {"bandwidth"}, {"route", Align::left}}};
  topology::Route route;
  for (const int gpu : example_destinations(fabric)) {
    fabric.route(0, gpu, example_flow, route);
    table.rows.push_back({fmt::format("gpu{}", gpu), kind_name(distances, fabric.distance(0, gpu)),
                          human_quantity(route.latency_s, Dimension::time), human_quantity(bottleneck(fabric, route), Dimension::bandwidth),
                          path_text(fabric, gpu, route)});
  }
  return table;
}

void print_cuts(const topology::CutReport& cuts, std::ostream& out) {
  fmt::print(out, "\nbisection {} (the NICs of one half inject {})\n", human_quantity(cuts.bisection_bytes_per_s, Dimension::bandwidth),
             human_quantity(cuts.injection_bytes_per_s, Dimension::bandwidth));
  fmt::print(out, "single points of failure: {}\n",
             cuts.single_points.empty() ? "none" : fmt::format("{}", fmt::join(cuts.single_points, ", ")));
}

// Any two GPUs reach one another when each reaches GPU 0 and is reached by it.
void check_reachable(const Fabric& fabric, std::vector<std::string>& faults) {
  topology::Route route;
  for (int gpu = 1; gpu < fabric.gpu_count(); ++gpu) {
    try {
      fabric.route(0, gpu, example_flow, route);
      fabric.route(gpu, 0, example_flow, route);
    } catch (const std::runtime_error& no_path) {
      faults.emplace_back(no_path.what());
    }
  }
}

}  // namespace

void describe_fabric(const Fabric& fabric, bool bold, std::ostream& out) {
  const topology::ClusterSpec& cluster = fabric.cluster();
  fmt::print(out, "{}: {} x {}, {} in a node\n", cluster.name, fabric.gpu_count(), cluster.gpu, cluster.gpus_per_node);
  for (sim::Table table : {vertex_table(fabric), link_table(fabric), route_table(fabric)}) {
    if (table.rows.empty()) continue;
    table.bold_header = bold;
    out << '\n';
    table.print(out);
  }
  print_cuts(fabric.cuts(), out);
}

std::vector<std::string> faults_of(const Fabric& fabric) {
  std::vector<std::string> faults;
  for (const std::string& name : fabric.cuts().single_points) faults.push_back(fmt::format("the loss of {} alone separates GPUs", name));
  check_reachable(fabric, faults);
  return faults;
}

}  // namespace rehearse::cli
