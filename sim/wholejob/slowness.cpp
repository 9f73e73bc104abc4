#include "sim/wholejob/slowness.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

Ns end_of(const Fault& fault) { return fault.duration >= never - fault.at ? never : fault.at + fault.duration; }

void slow_stages(const Fault& fault, const NodeMap& map, const std::set<int>& out, const std::set<int>& lost, ClusterState& state) {
  for (int node = fault.node; node < fault.node + fault.nodes; ++node) {
    const std::set<int> replicas = map.replicas(node);
    const bool in_use = !out.contains(node) && !std::ranges::includes(lost, replicas);
    if (!in_use) continue;
    for (const int stage : map.stages(node)) {
      double& slowdown = state.slow_stages.try_emplace(stage, 1.0).first->second;
      slowdown = std::max(slowdown, fault.slowdown);
    }
  }
}

}  // namespace

template <class Get>
std::set<int> NodeMap::over_ranks(int node, Get get) const {
  std::set<int> all;
  const int end = std::min((node + 1) * gpus_per_node_, grid_.size());
  for (int rank = node * gpus_per_node_; rank < end; ++rank) all.insert(get(grid_.coordinates(rank)));
  return all;
}

std::set<int> NodeMap::replicas(int node) const {
  return over_ranks(node, [](const workloads::Coordinates& at) { return at.dp; });
}

std::set<int> NodeMap::stages(int node) const {
  return over_ranks(node, [](const workloads::Coordinates& at) { return at.pp; });
}

std::set<int> NodeMap::replicas(const std::set<int>& nodes) const {
  std::set<int> all;
  for (const int node : nodes) all.merge(replicas(node));
  return all;
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
  ClusterState state;
  const std::set<int> lost = map.replicas(out);
  state.replicas_lost = static_cast<int>(lost.size());
  for (const Fault& fault : active_) {
    const Slows slows = slowed_by(fault.component);
    if (slows == Slows::compute) slow_stages(fault, map, out, lost, state);
    if (slows == Slows::ports) state.ports = std::max(state.ports, fault.slowdown);
    if (slows == Slows::trunks) state.trunks = std::max(state.trunks, fault.slowdown);
  }
  return state;
}

}  // namespace rehearse::sim
