// What is slow at the moment, and where the job feels it.
#pragma once

#include <set>
#include <vector>

#include "sim/faults/fault.hpp"
#include "sim/wholejob/cluster_state.hpp"
#include "workloads/rank_grid.hpp"

namespace rehearse::sim {

// Which replicas have ranks on a node.
class NodeMap {
 public:
  NodeMap(const workloads::Parallel& parallel, const Places& places) : parallel_(parallel), grid_(parallel), places_(places) {}
  [[nodiscard]] std::set<int> replicas(int node) const;
  [[nodiscard]] std::set<int> replicas(const std::set<int>& nodes) const;
  [[nodiscard]] const workloads::Parallel& parallel() const { return parallel_; }
  [[nodiscard]] const Places& places() const { return places_; }

 private:
  workloads::Parallel parallel_;
  workloads::RankGrid grid_;
  Places places_;
};

// The same slow parts by the ranks of a job of fewer replicas: of `from` those in `lost` are left out, and those beyond `to.dp`.
[[nodiscard]] SlowParts without_replicas(const SlowParts& slow, const workloads::Parallel& from, const std::set<int>& lost,
                                         const workloads::Parallel& to);

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
