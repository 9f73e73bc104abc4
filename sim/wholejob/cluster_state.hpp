// What of the cluster is slow or missing at some time, as far as a step feels it.
#pragma once

#include <compare>

#include "sim/faults/slow_parts.hpp"

namespace rehearse::sim {

struct ClusterState {
  int replicas_lost = 0;  // of the job's dp
  SlowParts slow = {};    // by the ranks of the job that is left: its replicas are counted anew

  [[nodiscard]] bool healthy() const { return *this == ClusterState{}; }
  auto operator<=>(const ClusterState&) const = default;
};

}  // namespace rehearse::sim
