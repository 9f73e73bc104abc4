// What deployments that `tune` makes come to at the load's rate: bit by bit the promised times of `predict`.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "sim/serving/promised_times.hpp"
#include "sim/serving/tune_candidates.hpp"

namespace rehearse::sim {

// Plans are of one role each, on all their numbers of instances; what a number comes to is worked out once.
class TuneFormula {
 public:
  // They must outlive it, with the rate that they have now.
  explicit TuneFormula(const TuneSides& sides) : TuneFormula(sides, sides.load) {}
  // Of a part of the sides' load, which must outlive it too.
  TuneFormula(const TuneSides& sides, const LoadMoments& load) : sides_(sides), load_(load), scratch_(sides.job) {}

  [[nodiscard]] PromisedTimes together(const PoolCandidate& plan, int number) const;
  [[nodiscard]] PromisedTimes apart(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const;
  // Whether the inventory holds so many of both, on whole nodes as they are placed.
  [[nodiscard]] bool holds(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const;
  [[nodiscard]] bool holds(const TunedDeployment& deployment) const;
  // Of any pools of both sides, or of one role; infinite where the inventory does not hold them.
  [[nodiscard]] PromisedTimes of(const TunedDeployment& deployment) const;
  [[nodiscard]] bool keeps(const PromisedTimes& times) const { return times.keeps(sides_.promise) && times.ttft_s < never_s; }

  // Below what so many instances come to, without a walk through passes: infinite where they cannot carry the rate.
  [[nodiscard]] PromisedTimes together_at_least(const PoolCandidate& plan, int number) const;
  // What a side takes of the times, and what lies between the sides takes at least; infinite: they cannot be paired.
  [[nodiscard]] double prompts_take_s(const PoolCandidate& plan, int number) const;
  [[nodiscard]] PromisedTimes decodes_take(const PoolCandidate& plan, int number) const;
  [[nodiscard]] MeanHandOver between(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const;
  [[nodiscard]] double between_at_least_s(const PoolCandidate& prompts, const PoolCandidate& decodes) const;

 private:
  static constexpr double never_s = std::numeric_limits<double>::infinity();
  [[nodiscard]] const SideState& state_of(const PoolCandidate& plan, int number) const;
  [[nodiscard]] bool holds(const ServingJob& job) const;
  void put_scratch(const PoolCandidate& prompts, int prompters, const PoolCandidate& decodes, int decoders) const;

  const TuneSides& sides_;
  const LoadMoments& load_;
  mutable ServingJob scratch_;  // whose pools are the two asked about
  mutable std::map<std::pair<const PoolCandidate*, int>, SideState> known_;
  mutable std::map<std::pair<std::size_t, int>, std::shared_ptr<const topology::Fabric>> fabrics_;  // by part and GPUs
};

}  // namespace rehearse::sim
