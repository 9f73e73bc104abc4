// One ring of members and the three passes that rings are made of. The ring algorithm runs one per channel, the hierarchical one runs one
// per domain and one per rail.
#pragma once

#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::workloads::collectives {

// A member on a ring, the part of the buffer that it owns, and how the hop to the next stop goes.
struct Stop {
  int member = 0;
  int first_block = 0, blocks = 1, block_stride = 1;
  int rail_of = -1;
};

struct RingWalk {
  std::vector<Stop> stops = {};
  double part_bytes = 0;  // of what one stop owns
  int channel = 0;

  [[nodiscard]] int size() const { return static_cast<int>(stops.size()); }
};

// Hops between domains on the longest way of a block through a ring of `domains` domains, the largest of which has `largest` stops. One lap
// is n-1 hops in a row, two laps are 2(n-1): all edges of the ring, or all of them twice, but for one or two in a row. Those left out stay
// inside a domain where it has stops enough.
[[nodiscard]] int crossings(int domains, int largest, int laps);

// Each pass appends its transfers to rounds start, start+1, ... and returns the round after its last one (start + size - 1).

// Every stop ends with the sum of its own part.
int reduce_scatter(std::vector<Round>& rounds, int start, const RingWalk& ring);
// Every stop begins with its own part and ends with all of them.
int all_gather(std::vector<Round>& rounds, int start, const RingWalk& ring);
// Stop `root` has all parts; every stop ends with its own. The part of the farthest stop leaves first.
int scatter(std::vector<Round>& rounds, int start, const RingWalk& ring, int root);

}  // namespace rehearse::workloads::collectives
