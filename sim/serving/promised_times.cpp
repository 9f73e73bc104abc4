#include "sim/serving/promised_times.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

double share_of_each(const Promise& promise) {
  return promise.both && promise.ttft_s > 0 && promise.tpot_s > 0 ? std::sqrt(promise.percentile) : promise.percentile;
}

LoadMoments promised_moments(const ServingJob& job) {
  LoadMoments load = moments_of(job.load, job.seed);
  if (job.promise.ttft_s > 0 || job.promise.tpot_s > 0) load.percentile = share_of_each(job.promise);
  return load;
}

PromisedTimes promised_together(const SideState& side, double front_s) {
  constexpr double never_s = INFINITY;
  if (!std::isfinite(side.ttft_s)) return {never_s, never_s};
  return {side.ttft_high_s + front_s, side.tpot_high_s};
}

// What lies between the sides is taken at its mean; before the first token, or before the second, of the short answers.
PromisedTimes promised_apart(const TransferSpec& transfer, const LoadMoments& load, const SideState& prompts, const SideState& decoding,
                             const MeanHandOver& between, double front_s) {
  constexpr double never_s = INFINITY;
  if (!std::isfinite(prompts.ttft_s) || !std::isfinite(decoding.ttft_s) || between.links_busy >= 1) return {never_s, never_s};
  const double between_s = between.waiting_s + between.transfer_s + decoding.queue_s;
  if (!transfer.prefill_answers_first) return {prompts.ttft_high_s + front_s + between_s + decoding.pass_s, decoding.tpot_high_s};
  const double spread_s = load.steps.empty() ? 0 : between_s / load.short_steps();
  return {prompts.ttft_high_s + front_s, decoding.tpot_high_s + spread_s};
}

}  // namespace rehearse::sim
