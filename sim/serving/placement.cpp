#include "sim/serving/placement.hpp"

#include <algorithm>
#include <set>

namespace rehearse::sim {
namespace {

std::vector<int> place(int& next, const Pool& pool, int gpus_per_node) {
  std::vector<int> first;
  for (int i = 0; i < pool.instances; ++i) {
    const int gpus = pool.plan.gpus(), used = next % gpus_per_node;
    if ((pool.spread || used + gpus > gpus_per_node) && used > 0) next += gpus_per_node - used;
    first.push_back(next);
    next += gpus;
  }
  if (pool.spread) next = (next + gpus_per_node - 1) / gpus_per_node * gpus_per_node;
  return first;
}

}  // namespace

std::vector<std::vector<int>> places_of(const ServingJob& job) {
  std::vector<int> next(job.parts.size(), 0);
  std::vector<std::vector<int>> places;
  for (const Pool& pool : job.pools) places.push_back(place(next[pool.part], pool, job.parts[pool.part].cluster.gpus_per_node));
  return places;
}

int nodes_of(const ServingJob& job, std::size_t part, std::optional<Role> role) {
  const std::vector<std::vector<int>> places = places_of(job);
  const int gpus_per_node = job.parts[part].cluster.gpus_per_node;
  std::set<int> nodes;
  for (std::size_t pool = 0; pool < places.size(); ++pool) {
    if (job.pools[pool].part != part || (role && job.pools[pool].role != *role)) continue;
    for (const int first : places[pool]) {
      for (int node = first / gpus_per_node; node <= (first + job.pools[pool].plan.gpus() - 1) / gpus_per_node; ++node) nodes.insert(node);
    }
  }
  return static_cast<int>(nodes.size());
}

double ports_bytes_per_s(const topology::ClusterSpec& cluster, int nodes) {
  return nodes * cluster.rail_bytes_per_s() * cluster.rails_per_node();
}

int gpus_taken(const ServingJob& job, std::size_t part) {
  const std::vector<std::vector<int>> places = places_of(job);
  int taken = 1;
  for (std::size_t pool = 0; pool < places.size(); ++pool) {
    if (job.pools[pool].part == part) taken = std::max(taken, places[pool].back() + job.pools[pool].plan.gpus());
  }
  return taken;
}

int instances_within(int inventory, int gpus, int gpus_per_node) {
  const int together = std::max(1, gpus_per_node / gpus);  // on whole nodes, of which they take so many GPUs
  const int taken = (std::max(gpus, gpus_per_node) + gpus_per_node - 1) / gpus_per_node * gpus_per_node;
  return inventory / taken * together + std::min(together, inventory % taken / gpus);
}

int gpus_of_part(const ServingJob& job, std::size_t part) {
  const topology::ClusterSpec& cluster = job.parts[part].cluster;
  if (cluster.max_gpus() > 0) return cluster.max_gpus();
  return (gpus_taken(job, part) + cluster.gpus_per_node - 1) / cluster.gpus_per_node * cluster.gpus_per_node;
}

}  // namespace rehearse::sim
