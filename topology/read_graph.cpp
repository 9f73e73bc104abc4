// network: {kind: graph}: named switches, trunks between them, and what hangs where.
#include <fmt/format.h>

#include <algorithm>

#include "config/islands.hpp"
#include "topology/read_link.hpp"

namespace rehearse::topology {
namespace {

constexpr int most_cables = 1 << 16;

std::size_t switch_index(const config::Node& node, const std::vector<std::string>& switches) {
  const std::string name = node.as_string();
  const auto it = std::find(switches.begin(), switches.end(), name);
  if (it == switches.end()) node.fail(fmt::format("unknown switch '{}'", name), config::suggestion(name, switches));
  return static_cast<std::size_t>(it - switches.begin());
}

std::vector<std::string> read_switches(const config::Node& node) {
  std::vector<std::string> names;
  for (const auto& item : node.items()) {
    const std::string name = item.as_string();
    if (std::find(names.begin(), names.end(), name) != names.end()) item.fail(fmt::format("switch '{}' is listed twice", name));
    names.push_back(name);
  }
  if (names.empty()) node.fail("a graph needs at least one switch");
  return names;
}

const More& trunk_keys() {
  static const More keys{{"between", list_of(config::text()).shape, true, "", "Two switches."},
                         {"cables", config::whole(1, most_cables).shape, false, "1", "Side by side."}};
  return keys;
}

SwitchGraph::Trunk read_trunk(const config::Node& node, const std::vector<std::string>& switches, const LinkSpec& nic) {
  const auto link = read_cable(node, nic, trunk_keys());
  const auto ends = node.at("between").items();
  if (ends.size() != 2) node.at("between").fail(fmt::format("a trunk lies between 2 switches, not {}", ends.size()));
  const auto a = switch_index(ends[0], switches);
  const auto b = switch_index(ends[1], switches);
  if (a == b) ends[1].fail(fmt::format("a trunk from '{}' to itself", switches[a]));
  return {switches[a], switches[b], link, read_count(node, "cables", 1, most_cables, 1)};
}

// NICs that serve the same GPU are striped over as one port, which can hang on one switch only.
void check_bundles(const config::Node& row, const std::vector<std::string>& names, const ClusterSpec& cluster) {
  const int bundle = cluster.nics_per_node / cluster.rails_per_node();
  for (std::size_t nic = 0; nic < names.size(); ++nic) {
    const std::size_t first = nic - nic % static_cast<std::size_t>(bundle);
    if (names[nic] != names[first])
      row.items()[nic].fail(fmt::format("NICs {} and {} serve the same GPU and must hang on the same switch", first, nic));
  }
}

std::vector<std::string> read_row(const config::Node& row, const std::vector<std::string>& switches, const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const auto& item : row.items()) names.push_back(switches[switch_index(item, switches)]);
  if (static_cast<int>(names.size()) != cluster.nics_per_node) {
    row.fail(fmt::format("{} switches for {} NICs: name one per NIC of the node", names.size(), cluster.nics_per_node));
  }
  check_bundles(row, names, cluster);
  return names;
}

std::uint32_t index_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Both ends of a transfer use NIC r of their node, so the switches that carry NIC r must reach each other, for every r.
void check_connected(const config::Node& attach, const SwitchGraph& graph) {
  config::Islands islands(graph.switches.size());
  for (const auto& trunk : graph.trunks) islands.join(index_of(graph.switches, trunk.a), index_of(graph.switches, trunk.b));
  const auto rows = attach.items();
  for (std::size_t node = 1; node < graph.attach.size(); ++node) {
    for (std::size_t nic = 0; nic < graph.attach[node].size(); ++nic) {
      const auto& here = graph.attach[node][nic];
      const auto& first = graph.attach[0][nic];
      if (islands.of(index_of(graph.switches, here)) == islands.of(index_of(graph.switches, first))) continue;
      rows[node].items()[nic].fail(fmt::format("no way from switch '{}' to '{}', where NIC {} of node 0 hangs", here, first, nic));
    }
  }
}

}  // namespace

More graph_keys() {
  return {{"switches", list_of(config::text()).shape, true, "", "Names of the switches."},
          {"trunks", {.kind = config::Shape::Kind::list, .parts = {cable_shape(trunk_keys())}}, false, "", "Cables between them."},
          {"attach", list_of(list_of(config::text())).shape, true, "", "Per node, or once for all, the switch of each NIC."}};
}

SwitchGraph read_switch_graph(const config::Node& node, const ClusterSpec& cluster) {
  SwitchGraph graph;
  graph.switches = read_switches(node.at("switches"));
  if (const auto trunks = node.find("trunks")) {
    for (const auto& item : trunks->items()) graph.trunks.push_back(read_trunk(item, graph.switches, cluster.nic));
  }
  const auto attach = node.at("attach");
  for (const auto& row : attach.items()) graph.attach.push_back(read_row(row, graph.switches, cluster));
  const auto rows = static_cast<int>(graph.attach.size());
  if (rows > 1 && cluster.nodes == 0) attach.fail("a row per node needs the number of nodes of the cluster", "add nodes: N");
  if (rows == 0 || (rows > 1 && rows != cluster.nodes)) {
    attach.fail(fmt::format("{} rows for {} nodes: give one row per node, or a single row for all", rows, cluster.nodes));
  }
  check_connected(attach, graph);
  return graph;
}

}  // namespace rehearse::topology
