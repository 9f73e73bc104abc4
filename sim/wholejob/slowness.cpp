#include "sim/wholejob/slowness.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

Ns end_of(const Fault& fault) { return fault.duration >= never - fault.at ? never : fault.at + fault.duration; }

}  // namespace

std::set<int> NodeMap::replicas(int node) const {
  std::set<int> all;
  const int end = std::min((node + 1) * places_.gpus_per_node, grid_.size());
  for (int rank = node * places_.gpus_per_node; rank < end; ++rank) all.insert(grid_.coordinates(rank).dp);
  return all;
}

std::set<int> NodeMap::replicas(const std::set<int>& nodes) const {
  std::set<int> all;
  for (const int node : nodes) all.merge(replicas(node));
  return all;
}

SlowParts without_replicas(const SlowParts& slow, const workloads::Parallel& from, const std::set<int>& lost,
                           const workloads::Parallel& to) {
  const workloads::RankGrid before(from), after(to);
  const auto moved = [&](const std::map<int, double>& ranks) {
    std::map<int, double> left;
    for (const auto& [rank, slowdown] : ranks) {
      workloads::Coordinates at = before.coordinates(rank);
      if (lost.contains(at.dp)) continue;
      at.dp -= static_cast<int>(std::distance(lost.begin(), lost.lower_bound(at.dp)));
      if (at.dp < to.dp) left[after.rank(at)] = slowdown;
    }
    return left;
  };
  SlowParts out = slow;
  out.gpus = moved(slow.gpus);
  out.ports = moved(slow.ports);
  return out;
}

Ns Slowness::next_end() const {
  Ns first = never;
  for (const Fault& fault : active_) first = std::min(first, end_of(fault));
  return first;
}

int Slowness::end_by(Ns now) {
  return static_cast<int>(std::erase_if(active_, [&](const Fault& fault) { return end_of(fault) <= now; }));
}

void Slowness::replaced(int first, int nodes) {
  std::erase_if(active_, [&](const Fault& fault) {
    const bool of_node = slowed_by(fault.component) == Slows::compute || fault.component == Component::nic;
    return of_node && fault.node >= first && fault.node + fault.nodes <= first + nodes;
  });
}

ClusterState Slowness::state(const NodeMap& map, const std::set<int>& out) const {
  SlowParts slow;
  for (const Fault& fault : active_) slow.add(fault, map.places());
  const std::set<int> lost = map.replicas(out);
  if (lost.empty()) return {0, slow};
  workloads::Parallel left = map.parallel();
  left.dp -= static_cast<int>(lost.size());
  return {static_cast<int>(lost.size()), left.dp > 0 ? without_replicas(slow, map.parallel(), lost, left) : SlowParts{}};
}

}  // namespace rehearse::sim
