// What the ranks of an instance's expert-parallel group have to do where some experts are asked for more often than others.
#pragma once

#include <map>
#include <vector>

#include "workloads/serving/instance_plan.hpp"

namespace rehearse::workloads {

// Of the busiest rank, in the mean over the layers with experts.
struct BusiestRank {
  double hit = 0;    // experts that it holds, copies included, of which it reads the weights
  double pairs = 0;  // share of all (token, expert) pairs
};

// Popularity belongs to a layer and stays from pass to pass; what comes in one pass is a matter of chance, which redundant experts even out
// (docs/serving.md). They go where an expert's share a copy is the largest, and then all of them, the largest first, to the rank that has
// the least so far and room (DeepSeek's EPLB, github.com/deepseek-ai/EPLB, its global policy); without them experts stand in their order.
class ExpertRanks {
 public:
  // The plan has a routing and a model with experts.
  explicit ExpertRanks(const InstancePlan& plan);

  [[nodiscard]] BusiestRank busiest(double tokens) const;  // with so many tokens in the group's pass
  // Share of all pairs by rank, in the layer whose busiest rank is the median of all layers'.
  [[nodiscard]] const std::vector<double>& pairs() const { return layers_[middle_].pairs; }
  // Pairs of the busiest rank over the mean, without chance, in the mean over the layers.
  [[nodiscard]] double imbalance() const;

 private:
  struct Slot {
    double log_missed = 0;  // of the chance that a token does not come to this copy of an expert
    std::size_t rank = 0;
  };
  struct Layer {
    std::vector<Slot> slots;
    std::vector<double> pairs;  // by rank
  };
  [[nodiscard]] Layer laid_out(const std::vector<double>& shares) const;
  [[nodiscard]] BusiestRank at(double tokens) const;

  std::size_t ranks_;
  int top_k_, redundant_;
  std::vector<Layer> layers_;
  std::size_t middle_ = 0;
  mutable std::map<int, BusiestRank> known_;  // by steps of an eighth of a doubling
};

// The largest of numbers that are drawn around their means, about: where so many normal deviations reach as one would in the mean. Of equal
// ones mean + sqrt(2 variance ln n).
[[nodiscard]] double largest_drawn(const std::vector<double>& means, const std::vector<double>& variances);

}  // namespace rehearse::workloads
