#include "sim/memory/host_memory.hpp"

#include <algorithm>
#include <map>

#include "workloads/rank_grid.hpp"

namespace rehearse::sim {

HostMemory fullest_host(const topology::ClusterSpec& cluster, const workloads::Parallel& parallel, const std::vector<RankMemory>& ranks) {
  std::map<int, double> of_stage, of_node;
  for (const RankMemory& rank : ranks) of_stage[rank.stage] = std::max(of_stage[rank.stage], rank.host_bytes);
  if (std::ranges::all_of(of_stage, [](const auto& entry) { return entry.second == 0; })) return {};
  const workloads::RankGrid grid(parallel);
  for (int rank = 0; rank < grid.size(); ++rank) of_node[rank / cluster.gpus_per_node] += of_stage[grid.coordinates(rank).pp];
  const auto fullest = std::ranges::max_element(of_node, {}, [](const auto& entry) { return entry.second; });
  return {fullest->first, fullest->second, cluster.host_memory.bytes};
}

}  // namespace rehearse::sim
