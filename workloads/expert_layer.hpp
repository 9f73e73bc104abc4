// What the routed experts of a layer do on one rank: dispatch, experts and combine of each chunk, forward and backward.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "workloads/expert_loads.hpp"
#include "workloads/expert_work.hpp"
#include "workloads/operators.hpp"

namespace rehearse::workloads {

// What is exchanged around the experts, for each of the equal pieces: one call after another; none when every rank has all experts.
struct ExpertCalls {
  std::vector<Communication> dispatch, combine;
};

// Of a token on a rank, for every pair that it makes there: the hierarchical dispatcher delivers it once. Of a model with experts.
[[nodiscard]] double copies_per_pair(const Workload& workload);
// Whether the activation function of routed experts and its gate are operators of their own.
[[nodiscard]] bool eager_experts(const Workload& workload);
// Whether full recomputation takes from memory what was dispatched and combined: where experts are spread.
[[nodiscard]] bool replays_dispatch(const Workload& workload);
// Whether HybridEP's kernels send tokens: where experts are spread and the dispatcher is hierarchical.
[[nodiscard]] bool by_hybridep(const Workload& workload);
// What it gathers before it sends them: for every token of all ranks and every expert whether the one goes to the other.
[[nodiscard]] double routing_map_bytes(const Workload& workload);

class ExpertLayer {
 public:
  explicit ExpertLayer(const Workload& workload, int step = 0);

  [[nodiscard]] const ExpertLoads& loads() const { return loads_; }
  // Of one of the equal pieces of a layer's tokens. Where all layers, micro-batches and ranks do the same, those arguments do not matter.
  // The reference stays valid; calls that ranks share are there once.
  [[nodiscard]] const ExpertCalls& calls(Pass pass, int ep_rank, int layer, int microbatch) const;
  [[nodiscard]] ExpertWork work(const RoutedExperts& what, int ep_rank, int layer, int microbatch) const;
  [[nodiscard]] bool again(const RoutedExperts& what) const;  // whether the experts' forward, or its activation, runs before their backward

 private:
  using Key = std::tuple<Pass, int, int, int, int>;
  [[nodiscard]] ExpertCalls make_calls(Pass pass, int chunks, int ep_rank, int layer, int microbatch) const;
  void add_counts(Pass pass, std::vector<Communication>& calls) const;
  [[nodiscard]] std::shared_ptr<const Exchange> counts() const;
  void add_weights(const char* what, Pass pass, int chunks, int layer, int microbatch, std::vector<Communication>& calls) const;
  [[nodiscard]] Communication small(const char* what, Pass pass, int chunks, int layer, int microbatch) const;
  [[nodiscard]] std::shared_ptr<const Exchange> exchange(bool dispatch, bool weights, int chunks, int layer, int microbatch) const;
  [[nodiscard]] std::vector<Communication> to_experts(const char* what, Pass pass, int chunks, int ep_rank, int layer,
                                                      int microbatch) const;
  [[nodiscard]] std::vector<Communication> from_experts(const char* what, Pass pass, int chunks, int ep_rank, int layer,
                                                        int microbatch) const;

  const Workload& workload_;
  ExpertLoads loads_;
  mutable std::map<Key, ExpertCalls> calls_;
  mutable std::map<std::tuple<bool, bool, int, int, int>, std::shared_ptr<const Exchange>> exchanges_;
  mutable std::shared_ptr<const Exchange> counts_;
};

}  // namespace rehearse::workloads
