#include "sim/serving/cluster_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/job/limits.hpp"
#include "sim/job/resolved_text.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Node;

// nodes: as many of the cluster as the part has, where it says.
ClusterPart read_part(const std::string& name, const Node& node, const std::optional<Node>& nodes, Node& resolved) {
  Part cluster = find_part(node, cluster_part);
  const Part gpu = take_gpu(cluster);
  Node as_large = cluster.node;
  if (nodes) as_large.set_child("nodes", *nodes);
  ClusterPart part{name, topology::read_cluster(as_large, cluster.name), read_gpu(gpu.node, gpu.name), {}};
  part.costs = read_few_token_costs(gpu.node.find("efficiency"), part.gpu);
  resolved = named(cluster);
  resolved.set_child("gpu", named(gpu));
  return part;
}

topology::LinkSpec read_joint(const Node& node) {
  topology::LinkSpec link;
  link.bandwidth_bytes_per_s = node.at("bandwidth").as_quantity(Dimension::bandwidth, 1e3);
  if (const auto efficiency = node.find("efficiency")) link.efficiency = efficiency->as_number(1e-3, 1);
  if (const auto latency = node.find("latency")) link.latency_s = latency->as_quantity(Dimension::time);
  return link;
}

std::size_t place_of_part(const ServingJob& job, const Node& node) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < job.parts.size(); ++i) {
    if (job.parts[i].name == node.as_string()) return i;
    names.push_back(job.parts[i].name);
  }
  node.fail("no part " + config::shown(node.as_string()) + " in the cluster", config::suggestion(node.as_string(), names));
}

// One network for all pairs, or a list with one for each pair that it names.
void read_between(ServingJob& job, const Node& node) {
  if (node.is_map()) {
    node.allow_keys({"bandwidth", "efficiency", "latency"});
    job.between.each = read_joint(node);
    return;
  }
  if (!node.is_sequence()) node.fail("between is neither a network nor a list of them", "write between: {bandwidth: 400 Gbps}");
  for (const Node& one : node.items()) {
    one.allow_keys({"parts", "bandwidth", "efficiency", "latency"});
    const Node parts = one.at("parts");
    const std::vector<Node> two = parts.items();
    if (two.size() != 2) parts.fail("a network joins two parts", "write parts: [ONE, OTHER]");
    const std::size_t from = place_of_part(job, two.front()), to = place_of_part(job, two.back());
    if (from == to) two.back().fail("a part is not joined to itself");
    if (!job.between.pairs.try_emplace(std::minmax(from, to), read_joint(one)).second) parts.fail("these two parts are joined twice");
  }
}

}  // namespace

void read_parts(ServingJob& job, Node& document, const Node& node) {
  Node resolved;
  const auto parts = node.is_map() ? node.find("parts") : std::nullopt;
  if (!parts) {
    job.parts.push_back(read_part("", node, std::nullopt, resolved));
    job.cluster_name = job.parts.front().cluster.name;
    document.set_child("cluster", resolved);
    return;
  }
  node.allow_keys({"parts", "between"});
  Node all;
  std::vector<std::string> names;
  for (const std::string& name : parts->keys()) {
    const Node entry = parts->at(name);
    entry.allow_keys({"cluster", "nodes"});
    const auto nodes = entry.find("nodes");
    Node inner, one;
    ClusterPart part = read_part(name, entry.at("cluster"), nodes, inner);
    one.set_child("cluster", inner);
    if (nodes) one.set_child("nodes", *nodes);
    all.set_child(name, one);
    names.push_back(part.cluster.name);
    job.parts.push_back(std::move(part));
  }
  if (job.parts.empty()) parts->fail_at_key("a cluster with parts needs at least one");
  job.cluster_name = fmt::format("{}", fmt::join(names, " + "));
  resolved.set_child("parts", all);
  if (const auto between = node.find("between")) {
    read_between(job, *between);
    resolved.set_child("between", *between);
  }
  document.set_child("cluster", resolved);
}

}  // namespace rehearse::sim
