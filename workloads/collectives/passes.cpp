#include "workloads/collectives/passes.hpp"

namespace rehearse::workloads::collectives {
namespace {

Round& pass_round(std::vector<Round>& rounds, int index) {
  const auto at = static_cast<std::size_t>(index);
  if (rounds.size() <= at) rounds.resize(at + 1);
  return rounds[at];
}

Transfer part_of(const Stop& owner, const Stop& from, const Stop& to, const RingWalk& ring, bool reduce) {
  return {.from = from.member,
          .to = to.member,
          .bytes = ring.part_bytes,
          .channel = ring.channel,
          .first_block = owner.first_block,
          .blocks = owner.blocks,
          .block_stride = owner.block_stride,
          .reduce = reduce};
}

}  // namespace

int direct_reduce_scatter(std::vector<Round>& rounds, int start, const RingWalk& ring) {
  if (ring.size() == 1) return start;
  for (const Stop& from : ring.stops) {
    for (const Stop& to : ring.stops) {
      if (from.member != to.member) pass_round(rounds, start).transfers.push_back(part_of(to, from, to, ring, true));
    }
  }
  return start + 1;
}

int direct_all_gather(std::vector<Round>& rounds, int start, const RingWalk& ring) {
  if (ring.size() == 1) return start;
  for (const Stop& from : ring.stops) {
    for (const Stop& to : ring.stops) {
      if (from.member != to.member) pass_round(rounds, start).transfers.push_back(part_of(from, from, to, ring, false));
    }
  }
  return start + 1;
}

int direct_scatter(std::vector<Round>& rounds, int start, const RingWalk& ring, int root) {
  if (ring.size() == 1) return start;
  const Stop& from = ring.stops[static_cast<std::size_t>(root)];
  for (const Stop& to : ring.stops) {
    if (to.member != from.member) pass_round(rounds, start).transfers.push_back(part_of(to, from, to, ring, false));
  }
  return start + 1;
}

}  // namespace rehearse::workloads::collectives
