// What of the cluster is slow or missing at some time, as far as a step feels it.
#pragma once

#include <compare>
#include <map>

namespace rehearse::sim {

struct ClusterState {
  int replicas_lost = 0;                   // of the job's dp
  std::map<int, double> slow_stages = {};  // pipeline stage -> how many times as long its computation takes
  double ports = 1;                        // how many times as long the network ports take
  double trunks = 1;                       // the same of what lies between leaf switches

  [[nodiscard]] bool healthy() const { return *this == ClusterState{}; }
  auto operator<=>(const ClusterState&) const = default;
};

}  // namespace rehearse::sim
