// What of a deployment does not go together, once its pools are read. Each throws config::InputError at the key that is to blame.
#pragma once

#include "config/node.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// Which of the sides there are, and whether that makes a deployment. Leaves out what an isolated one does not have.
void check_roles(ServingJob& job, const config::Node& serving);
// Whether the cluster has as many GPUs.
void check_size(const ServingJob& job, const config::Node& pools);
// Of `transfer`: a path that was written down. A default gives way (alignments/vendor.cpp), what was written does not.
void check_path(const ServingJob& job, const config::Node& path);
// Of `serving`: where an instance that returns has its weights from, which the clusters of all pools must have.
void read_reload(ServingJob& job, const config::Node& reload);
// Whether instances of both hold the same weights.
[[nodiscard]] bool has_weights_of(const Pool& one, const Pool& other);
// A note where the network between two parts is said to carry more than the ports of one: nothing can, and it may be a slip of units.
void note_wide_between(ServingJob& job);
// Of `serving`: whether the engines of the two sides make caches fit each other.
void check_alignable(const ServingJob& job, const config::Node& serving);
// Of `transfer`: whether hosts can change the layout of what crosses their memory.
void check_align(const ServingJob& job, const config::Node& align);
// Whether the load says which prompts begin alike. Hashes come with a trace, for as many prompts as it has.
void check_blocks(const ServingJob& job, const config::Node& serving);
// Whether there are caches for a router that looks for prefixes.
void check_prefix_router(const ServingJob& job, const config::Node& serving);
// Whether prompts of every length have a pool where the router goes by them. Notes where nothing is divided.
void check_lengths(ServingJob& job, const config::Node& serving);
// A note of what a sequence of a model with mixers takes whatever its length.
void note_states(ServingJob& job, const Pool& pool);

}  // namespace rehearse::sim
