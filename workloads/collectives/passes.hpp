// The passes that collectives inside one domain are made of: along a ring, or over the direct links of a mesh.
#pragma once

#include "workloads/collectives/ring_walk.hpp"

namespace rehearse::workloads::collectives {

// Appends its transfers to the rounds from `start` on and returns the round after its last one.
using Pass = int (*)(std::vector<Round>&, int start, const RingWalk&);

// In one round every stop sends its share of each part to the part's owner, over direct links. Afterwards every stop has the sum of its
// part.
int direct_reduce_scatter(std::vector<Round>& rounds, int start, const RingWalk& ring);
// In one round every stop sends its own part to all others.
int direct_all_gather(std::vector<Round>& rounds, int start, const RingWalk& ring);
// In one round stop `root` sends every other one its part.
int direct_scatter(std::vector<Round>& rounds, int start, const RingWalk& ring, int root);

}  // namespace rehearse::workloads::collectives
