// Which parts of the cluster are slow, as far as a step feels it.
#pragma once

#include <compare>
#include <map>
#include <vector>

#include "sim/faults/fault.hpp"

namespace rehearse::sim {

// Where the GPUs of a job are: rank r is GPU r % gpus_per_node of node r / gpus_per_node.
struct Places {
  int gpus = 1;
  int gpus_per_node = 1;
  int rails = 1;  // network ports per node
  [[nodiscard]] int nodes() const { return (gpus + gpus_per_node - 1) / gpus_per_node; }
  [[nodiscard]] int rail_of(int rank) const { return rank % gpus_per_node * rails / gpus_per_node; }
};

// The ranks whose computation (gpu, hbm, host and what takes whole nodes) or network port (nic, link, switch) a fault touches. A switch
// serves its rail on all nodes, unless the fault names several.
[[nodiscard]] std::vector<int> ranks_hit(const Fault& fault, const Places& places);

struct SlowParts {
  std::map<int, double> gpus = {};   // rank -> how many times as long its computation takes
  std::map<int, double> ports = {};  // rank -> the same of the network port that it uses
  double trunks = 1;                 // the same of what lies between leaf switches
  int lost_spines = 0;               // the others carry their traffic

  void add(const Fault& fault, const Places& places);  // of kind slow; of several on one part the slowest counts
  // How many times as long what lies between leaf switches takes, with so many spines when all are there.
  [[nodiscard]] double trunk_factor(int spines) const;
  [[nodiscard]] double gpu(int rank) const;
  [[nodiscard]] double port(int rank) const;
  [[nodiscard]] bool none() const { return *this == SlowParts{}; }
  auto operator<=>(const SlowParts&) const = default;
};

}  // namespace rehearse::sim
