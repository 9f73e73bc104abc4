#include "sim/serving/cluster_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

void read_between(ServingJob& job, const Node& node) {
  node.allow_keys({"bandwidth", "efficiency", "latency"});
  job.between.bandwidth_bytes_per_s = node.at("bandwidth").as_quantity(Dimension::bandwidth, 1e3);
  if (const auto efficiency = node.find("efficiency")) job.between.efficiency = efficiency->as_number(1e-3, 1);
  if (const auto latency = node.find("latency")) job.between.latency_s = latency->as_quantity(Dimension::time);
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
