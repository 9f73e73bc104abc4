// Where the instances of a deployment stand, and what each part of the cluster has.
#pragma once

#include <optional>
#include <vector>

#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// [pool][instance] its first GPU in its part. Instances in order, whole: one that fits into what is left of a node goes there, another
// begins a node. Those of a pool that is spread have a node each, or several, which nobody shares.
[[nodiscard]] std::vector<std::vector<int>> places_of(const ServingJob& job);

// Nodes of a part on which instances of pools of a role stand, or of any.
[[nodiscard]] int nodes_of(const ServingJob& job, std::size_t part, std::optional<Role> role = std::nullopt);
// What the NICs of so many nodes carry, in one direction.
[[nodiscard]] double ports_bytes_per_s(const topology::ClusterSpec& cluster, int nodes);
// GPUs of a part from its first one to the last one that an instance takes; at least 1.
[[nodiscard]] int gpus_taken(const ServingJob& job, std::size_t part);
// Instances of so many GPUs each that an inventory holds, placed as places_of() does.
[[nodiscard]] int instances_within(int inventory, int gpus, int gpus_per_node);
// GPUs of a part: those of its cluster, or whole nodes for what is placed there. GPUs and nodes are counted part after part.
[[nodiscard]] int gpus_of_part(const ServingJob& job, std::size_t part);

}  // namespace rehearse::sim
