#include "workloads/collectives/ring_walk.hpp"

#include <algorithm>

namespace rehearse::workloads::collectives {
namespace {

const Stop& stop_at(const RingWalk& ring, int index) {
  const int n = ring.size();
  return ring.stops[static_cast<std::size_t>((index % n + n) % n)];
}

Transfer hop(const RingWalk& ring, int from, int part, bool reduce) {
  const Stop& sender = stop_at(ring, from);
  const Stop& owner = stop_at(ring, part);
  return {.from = sender.member,
          .to = stop_at(ring, from + 1).member,
          .bytes = ring.part_bytes,
          .channel = ring.channel,
          .rail_of = sender.rail_of,
          .first_block = owner.first_block,
          .blocks = owner.blocks,
          .block_stride = owner.block_stride,
          .reduce = reduce};
}

std::vector<Transfer>& round_at(std::vector<Round>& rounds, int index) {
  const auto at = static_cast<std::size_t>(index);
  if (rounds.size() <= at) rounds.resize(at + 1);
  return rounds[at].transfers;
}

}  // namespace

int crossings(int domains, int largest, int laps) {
  const int edges_inside_in_a_row = largest - 1;
  return laps * domains - std::max(0, laps - edges_inside_in_a_row);
}

// Part j leaves stop j+1 in round 0 and reaches stop j in round n-2.
int reduce_scatter(std::vector<Round>& rounds, int start, const RingWalk& ring) {
  for (int round = 0; round + 1 < ring.size(); ++round) {
    for (int from = 0; from < ring.size(); ++from) round_at(rounds, start + round).push_back(hop(ring, from, from - 1 - round, true));
  }
  return start + ring.size() - 1;
}

int all_gather(std::vector<Round>& rounds, int start, const RingWalk& ring) {
  for (int round = 0; round + 1 < ring.size(); ++round) {
    for (int from = 0; from < ring.size(); ++from) round_at(rounds, start + round).push_back(hop(ring, from, from - round, false));
  }
  return start + ring.size() - 1;
}

// The part of the stop at distance e leaves the root in round n-1-e, so at distance d it travels in round n-1-e+d.
int scatter(std::vector<Round>& rounds, int start, const RingWalk& ring, int root) {
  const int n = ring.size();
  for (int round = 0; round + 1 < n; ++round) {
    for (int distance = 0; distance <= round; ++distance) {
      round_at(rounds, start + round).push_back(hop(ring, root + distance, root + n - 1 - round + distance, false));
    }
  }
  return start + n - 1;
}

}  // namespace rehearse::workloads::collectives
