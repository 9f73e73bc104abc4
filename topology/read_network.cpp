#include <fmt/format.h>

#include <cstdint>

#include "topology/nic_scale.hpp"
#include "topology/read_link.hpp"

namespace rehearse::topology {
namespace {

constexpr int most_nodes_of_a_leaf = 1 << 20;
constexpr int most_switches = 1 << 14;  // distance tables grow with the square: half a gigabyte at this size

const config::Names<Network> kinds{{"single_switch", Network::single_switch},
                                   {"leaf_spine", Network::leaf_spine},
                                   {"rail_optimised", Network::rail_optimised},
                                   {"fat_tree", Network::fat_tree},
                                   {"torus", Network::torus},
                                   {"dragonfly", Network::dragonfly},
                                   {"graph", Network::graph}};

const InNetwork sharp{"sharp", "InfiniBand's SHARP.", "The switches reduce and multicast."};

// What a network of this kind says beside its kind.
More keys_of(Network kind) {
  const auto count = [](std::string name, int most, std::string otherwise, std::string means) {
    return config::Parameter{std::move(name), config::whole(1, most).shape, otherwise.empty(), std::move(otherwise), std::move(means)};
  };
  const auto ratio = [](std::string name, std::string means) {
    return config::Parameter{std::move(name), config::number(1, 1000).shape, false, "1", std::move(means)};
  };
  const config::Parameter leaf = count("nodes_per_leaf", most_nodes_of_a_leaf, "", "Nodes under a leaf."),
                          oversubscription = ratio("oversubscription", "Of a leaf: capacity down over capacity up."),
                          spines = count("spines", most_switches, "as the uplinks need", "Spines, per plane."),
                          at_scale{"at_scale", config::number(least_nic_efficiency, 1).shape, false, fmt::format("{}", unmeasured_at_scale),
                                   "Of the NICs' efficiency, what is left from 64 nodes on; it falls from 16 on. Not with nics.by_nodes."},
                          trunk{"trunk", cable_shape(), false, "as the NICs'", "A cable between switches."},
                          in_network = in_network_key(sharp);
  switch (kind) {
    case Network::single_switch:
      return {in_network};
    case Network::leaf_spine:
      return {leaf, oversubscription, spines, at_scale, trunk, in_network};
    case Network::rail_optimised:
      return {leaf,   oversubscription,
              spines, {"separate_planes", config::truth().shape, false, "false", "Each rail has spines of its own."},
              trunk,  in_network};
    case Network::fat_tree:
      return {leaf,
              oversubscription,
              count("nodes_per_pod", most_nodes_of_a_leaf, "nodes/pods", "Nodes in a pod."),
              count("pods", most_nodes_of_a_leaf, "nodes/nodes_per_pod", "Pods."),
              ratio("pod_oversubscription", "The same of a pod."),
              trunk,
              in_network};
    case Network::torus: {
      const config::Shape cable = cable_shape(), wrap = config::truth().shape;
      const auto each = [](const config::Shape& shape) {
        return config::either({shape, {.kind = config::Shape::Kind::list, .parts = {shape}}});
      };
      return {{"dims", list_of(config::whole(1, most_switches)).shape, true, "", "Nodes along each dimension."},
              {"trunk", each(cable), false, "as the NICs'", "A cable, of all dimensions or of each."},
              {"wrap", each(wrap), false, "true", "Whether dimensions close to rings."}};
    }
    case Network::dragonfly:
      return {{"groups", config::whole(2, most_switches).shape, true, "", "Groups of routers."},
              count("routers_per_group", most_switches, "", "Routers of a group."),
              count("nodes_per_router", most_nodes_of_a_leaf, "", "Nodes at a router."),
              trunk};
    case Network::graph:
      return graph_keys();
    default:
      return {};
  }
}

config::Shape shape_of(const std::string& word, Network kind) {
  config::Shape shape{.kind = config::Shape::Kind::mapping,
                      .keys = {{"kind", {.kind = config::Shape::Kind::choice, .choices = {word}}, true, "", "How switches are wired."}}};
  for (config::Parameter& key : keys_of(kind)) shape.keys.push_back(std::move(key));
  return shape;
}

double read_oversubscription(const config::Node& node, std::string_view key) {
  const auto value = node.find(key);
  return value ? value->as_number(1, 1000) : 1;
}

void read_tree(const config::Node& node, NetworkSpec& net) {
  net.nodes_per_leaf = read_count(node.at("nodes_per_leaf"), 1, most_nodes_of_a_leaf);
  net.oversubscription = read_oversubscription(node, "oversubscription");
  net.spines = read_count(node, "spines", 1, most_switches, 0);
  if (const auto planes = node.find("separate_planes")) net.separate_planes = planes->as_bool();
}

int pod_size_from_count(const config::Node& pods, int nodes) {
  const int count = read_count(pods, 1, most_nodes_of_a_leaf);
  if (nodes == 0) pods.fail("pods needs the number of nodes of the cluster", "give nodes_per_pod instead");
  if (nodes % count != 0) pods.fail(fmt::format("{} nodes do not divide into {} pods", nodes, count));
  return nodes / count;
}

void read_pods(const config::Node& node, int nodes, NetworkSpec& net) {
  const auto pods = node.find("pods");
  const auto size = node.find("nodes_per_pod");
  if (pods && size) pods->fail_at_key("pods and nodes_per_pod say the same thing twice", "keep one of them");
  if (!pods && !size) node.fail("a fat_tree needs nodes_per_pod (or pods)");
  net.nodes_per_pod = size ? read_count(*size, 1, most_nodes_of_a_leaf) : pod_size_from_count(*pods, nodes);
  if (net.nodes_per_pod % net.nodes_per_leaf != 0) {
    (size ? *size : *pods).fail(fmt::format("a pod of {} nodes does not divide into leaves of {}", net.nodes_per_pod, net.nodes_per_leaf));
  }
  net.pod_oversubscription = read_oversubscription(node, "pod_oversubscription");
}

void require_nodes(const config::Node& node, int nodes, std::string_view what) {
  if (nodes == 0) node.fail(fmt::format("a {} has a fixed size: the cluster must say how many nodes it has", what), "add nodes: N");
}

void read_torus(const config::Node& node, int nodes, NetworkSpec& net) {
  const auto dims = node.at("dims");
  require_nodes(node, nodes, "torus");
  std::int64_t product = 1;
  for (const auto& item : dims.items()) {
    net.dims.push_back(read_count(item, 1, most_switches));
    product *= net.dims.back();
    if (product > most_switches) item.fail(fmt::format("a torus of more than {} routers", most_switches));
  }
  if (net.dims.empty() || net.dims.size() > 8) dims.fail(fmt::format("a torus has 1 to 8 dimensions, not {}", net.dims.size()));
  if (product != nodes) dims.fail(fmt::format("the torus has {} routers but the cluster {} nodes", product, nodes), "one router per node");
}

// trunk: one cable for all dimensions or a list of one each; wrap: whether they close to rings, likewise.
void read_axes(const config::Node& node, const LinkSpec& nic, NetworkSpec& net) {
  const auto check = [&](const config::Node& list) {
    if (list.items().size() != net.dims.size()) {
      list.fail(fmt::format("{} entries for {} dimensions: give one for all, or one each", list.items().size(), net.dims.size()));
    }
  };
  if (const auto trunk = node.find("trunk"); trunk && trunk->is_sequence()) {
    check(*trunk);
    for (const auto& item : trunk->items()) net.axes.push_back(read_cable(item, nic));
  } else {
    net.axes.assign(net.dims.size(), net.trunk);
  }
  net.wrap.assign(net.dims.size(), true);
  const auto wrap = node.find("wrap");
  if (!wrap) return;
  if (!wrap->is_sequence()) return net.wrap.assign(net.dims.size(), wrap->as_bool());
  check(*wrap);
  for (std::size_t axis = 0; axis < net.wrap.size(); ++axis) net.wrap[axis] = wrap->items()[axis].as_bool();
}

void read_dragonfly(const config::Node& node, int nodes, NetworkSpec& net) {
  require_nodes(node, nodes, "dragonfly");
  net.groups = read_count(node.at("groups"), 2, most_switches);
  net.routers_per_group = read_count(node.at("routers_per_group"), 1, most_switches);
  net.nodes_per_router = read_count(node.at("nodes_per_router"), 1, most_nodes_of_a_leaf);
  const std::int64_t routers = std::int64_t{net.groups} * net.routers_per_group;
  if (routers > most_switches) node.fail(fmt::format("a dragonfly of {} routers is more than {}", routers, most_switches));
  if (routers * net.nodes_per_router != nodes) {
    node.fail(fmt::format("the dragonfly has room for {} nodes ({} groups x {} routers x {}) but the cluster has {}",
                          routers * net.nodes_per_router, net.groups, net.routers_per_group, net.nodes_per_router, nodes));
  }
}

}  // namespace

config::Shape network_shape() {
  std::vector<config::Shape> all;
  for (const std::string& word : kinds.words()) all.push_back(shape_of(word, *kinds.find(word)));
  return config::either(std::move(all));
}

NetworkSpec read_network(const config::Node& node, const ClusterSpec& cluster) {
  NetworkSpec net;
  net.kind = kinds.read(node.at("kind"));
  node.allow_keys(names_of(shape_of("", net.kind).keys));
  net.trunk = cluster.nic;
  const auto trunk = node.find("trunk");
  if (trunk && !(net.kind == Network::torus && trunk->is_sequence())) net.trunk = read_cable(*trunk, cluster.nic);
  if (const auto in_network = node.find("in_network")) net.in_switch = read_in_network(*in_network, cluster.nic, sharp);
  switch (net.kind) {
    case Network::none:
    case Network::single_switch:
      break;
    case Network::fat_tree:
      read_tree(node, net);
      read_pods(node, cluster.nodes, net);
      break;
    case Network::leaf_spine:
    case Network::rail_optimised:
      read_tree(node, net);
      break;
    case Network::torus:
      read_torus(node, cluster.nodes, net);
      read_axes(node, cluster.nic, net);
      break;
    case Network::dragonfly:
      read_dragonfly(node, cluster.nodes, net);
      break;
    case Network::graph:
      net.graph = read_switch_graph(node, cluster);
      break;
  }
  return net;
}

}  // namespace rehearse::topology
