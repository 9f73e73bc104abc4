// What a node's GPUs keep in its host's memory.
#pragma once

#include <vector>

#include "sim/result.hpp"
#include "sim/system.hpp"

namespace rehearse::sim {

// Of the node that holds most. Ranks of one stage keep equally much.
[[nodiscard]] HostMemory fullest_host(const topology::ClusterSpec& cluster, const workloads::Parallel& parallel,
                                      const std::vector<RankMemory>& ranks);

}  // namespace rehearse::sim
