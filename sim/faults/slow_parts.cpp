#include "sim/faults/slow_parts.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

double at_or_one(const std::map<int, double>& of, int rank) {
  const auto it = of.find(rank);
  return it == of.end() ? 1 : it->second;
}

bool one_gpu(Component component) { return component == Component::gpu || component == Component::hbm || component == Component::software; }

}  // namespace

std::vector<int> ranks_hit(const Fault& fault, const Places& places) {
  const bool rail = fault.component == Component::switch_;
  const bool port = rail || fault.component == Component::nic || fault.component == Component::link;
  const bool everywhere = rail && fault.nodes == 1;
  const int first = everywhere ? 0 : fault.node * places.gpus_per_node;
  const int end = everywhere ? places.gpus : std::min(places.gpus, (fault.node + fault.nodes) * places.gpus_per_node);
  std::vector<int> hit;
  for (int rank = first; rank < end; ++rank) {
    const bool all = fault.unit == all_units || (!port && !one_gpu(fault.component));
    if (all || fault.unit == (port ? places.rail_of(rank) : rank % places.gpus_per_node)) hit.push_back(rank);
  }
  return hit;
}

void SlowParts::add(const Fault& fault, const Places& places) {
  const Slows slows = slowed_by(fault.component);
  if (slows == Slows::trunks) {
    if (fault.lost) {
      ++lost_spines;
    } else {
      trunks = std::max(trunks, fault.slowdown);
    }
    return;
  }
  for (const int rank : ranks_hit(fault, places)) {
    double& factor = (slows == Slows::compute ? gpus : ports).try_emplace(rank, 1.0).first->second;
    factor = std::max(factor, fault.slowdown);
  }
}

double SlowParts::trunk_factor(int spines) const {
  const int left = std::max(1, spines - lost_spines);
  return lost_spines > 0 ? std::max(trunks, static_cast<double>(spines) / left) : trunks;
}

double SlowParts::gpu(int rank) const { return at_or_one(gpus, rank); }
double SlowParts::port(int rank) const { return at_or_one(ports, rank); }

}  // namespace rehearse::sim
