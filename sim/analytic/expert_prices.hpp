// What the routed experts of a layer take in every micro-batch of a step: on the rank that gets most, for which the others of its group
// wait.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/analytic/overlap.hpp"
#include "sim/cost/price_book.hpp"
#include "sim/system.hpp"
#include "workloads/expert_layer.hpp"

namespace rehearse::sim {

class ExpertPrices {
 public:
  // Of a model that has experts; `step`: of the routing. All must outlive it. Contention is no part of these prices.
  ExpertPrices(const System& system, const workloads::Workload& workload, PriceBook& prices, int step = 0);

  [[nodiscard]] const workloads::ExpertLayer& layer() const { return layer_; }
  [[nodiscard]] int step() const { return step_; }
  // [micro-batch] Of one chunk; one for all of them where they are alike. The reference stays valid.
  [[nodiscard]] const std::vector<ChunkTimes>& chunks(const workloads::RoutedExperts& what, int layer, int stage);
  // Of the layer's calls one after another.
  [[nodiscard]] double seconds(const std::vector<workloads::Communication>& calls, int stage);
  // Pairs that the hottest rank's experts get, in the mean micro-batch.
  [[nodiscard]] double most_pairs(int layer) const;

 private:
  // Of all that experts compute on so many pairs; again: what chunks or moe_act recompute.
  struct WorkTimes {
    double forward_s = 0, recompute_s = 0, inputs_s = 0, weights_s = 0, again_s = 0;
    [[nodiscard]] double of(const workloads::RoutedExperts& what) const;
  };
  [[nodiscard]] ChunkTimes chunk(const workloads::RoutedExperts& what, int layer, int microbatch, int stage);
  [[nodiscard]] const WorkTimes& work(double pairs, bool wide);

  const System& system_;
  const workloads::Workload& workload_;
  std::optional<workloads::Workload> wide_;  // of layers in bf16, when one is asked for
  PriceBook& prices_;
  workloads::ExpertLayer layer_;
  int step_;
  int microbatches_;                                                                       // that differ
  std::map<std::tuple<workloads::Pass, bool, int, int>, std::vector<ChunkTimes>> chunks_;  // by work, layer and place
  std::array<std::unordered_map<double, WorkTimes>, 2> work_;  // [in a layer in bf16] by pairs; never walked through
  std::map<int, std::unordered_map<const workloads::Exchange*, double>> exchanges_s_;  // by place; the layer keeps them
};

}  // namespace rehearse::sim
