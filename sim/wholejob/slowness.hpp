// What is slow at the moment, and where the job feels it.
#pragma once

#include <set>
#include <vector>

#include "sim/faults/fault.hpp"
#include "sim/wholejob/cluster_state.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {

// Which replicas and stages have ranks on a node.
class NodeMap {
 public:
  NodeMap(const workloads::Parallel& parallel, int gpus_per_node) : grid_(parallel), gpus_per_node_(gpus_per_node) {}
  [[nodiscard]] std::set<int> replicas(int node) const;
  [[nodiscard]] std::set<int> stages(int node) const;
  [[nodiscard]] std::set<int> replicas(const std::set<int>& nodes) const;

 private:
  template <class Get>
  [[nodiscard]] std::set<int> over_ranks(int node, Get get) const;
  workloads::RankGrid grid_;
  int gpus_per_node_;
};

class Slowness {
 public:
  void begin(const Fault& fault) { active_.push_back(fault); }
  [[nodiscard]] Ns next_end() const;
  // Removes what is over by then; returns how many that were.
  int end_by(Ns now);
  // These nodes were replaced: what was slow in them (not in switches) went with them.
  void replaced(int first, int nodes);

  // With the nodes in `out` left out.
  [[nodiscard]] ClusterState state(const NodeMap& map, const std::set<int>& out) const;

 private:
  std::vector<Fault> active_;
};

}  // namespace rehearse::sim
