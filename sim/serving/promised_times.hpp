// What a promise is held against, by formula: times that the promised share of the requests keeps to.
#pragma once

#include "sim/serving/hand_over_formula.hpp"
#include "sim/serving/serving_job.hpp"
#include "sim/serving/side_formula.hpp"

namespace rehearse::sim {

// Both in the same request are taken as each of the two at the share whose square is promised.
[[nodiscard]] double share_of_each(const Promise& promise);
// Of the job's load, its percentile that of the promise; 0: nothing is promised.
[[nodiscard]] LoadMoments promised_moments(const ServingJob& job);

struct PromisedTimes {
  double ttft_s = -1, tpot_s = -1;  // infinite: beyond the capacity; -1: the formula does not know them
  [[nodiscard]] bool keeps(const Promise& promise) const {
    return (promise.ttft_s <= 0 || ttft_s <= promise.ttft_s) && (promise.tpot_s <= 0 || tpot_s <= promise.tpot_s);
  }
};

// front_s: of the engine that takes a request.
[[nodiscard]] PromisedTimes promised_together(const SideState& side, double front_s);
[[nodiscard]] PromisedTimes promised_apart(const TransferSpec& transfer, const LoadMoments& load, const SideState& prompts,
                                           const SideState& decoding, const MeanHandOver& between, double front_s);

}  // namespace rehearse::sim
