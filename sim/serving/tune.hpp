// The deployment that keeps a promise at the least cost, or carries the most within an inventory (docs/serving.md, "Tuning").
#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/serving/serving_job.hpp"
#include "sim/serving/serving_result.hpp"

namespace rehearse::sim {

inline constexpr const char* divides_by_length = "by-length";  // the router of pools that say longest_prompt

struct TunedDeployment {
  std::vector<Pool> pools;  // of role both, or of prefill and of decode
  double cost_per_s = 0;
  int gpus = 0;
  bool mixed = false;             // several plans in a role
  std::string kind;               // "together on rich", "apart on rich and wide", "apart, several plans in a role"
  double ttft_s = 0, tpot_s = 0;  // by formula, at the promise's percentile; of several plans in a role over the requests of all
  double rate_per_s = 0;          // that it carries within the promise by formula, for which the times are; 0: the tuning's
  // So many others are the same but for limits without effect, "POOL.tokens" or "POOL.sequences".
  std::uint64_t twins = 0;
  std::vector<std::string> without_effect = {};
  double below_per_s = 0;  // with a goal of rates: simulated at this rate alone, which another carries and it does not
  // Of those that were simulated; with a goal of rates also the highest rate that keeps the promise.
  std::optional<ServingResult> simulated;
};

struct ServingTuning {
  std::vector<ServingGoal> goals{ServingGoal::cost};
  std::vector<std::string> notes, parts;  // what the reader should know; names of the cluster's parts
  double output_tokens_per_s = 0;         // at that rate
  double rate_per_s = 0;                  // for which it is: the job's, or the highest that a deployment within the inventory carries
  std::vector<TunedDeployment> best;      // by formula from the cheapest on, the cheapest of each kind among them; at most `keep` and those
  std::optional<std::size_t> chosen;      // of `best`: the cheapest that keeps the promise when simulated (without simulation: the first)
  std::vector<TunedDeployment> front;     // of several goals: all deployments that no other beats in every one, by the first goal
  std::uint64_t pairs = 0, looked_at = 0;
  int near_misses = 0;                               // deployments beside what the formula found that were simulated
  double bound_per_s = 0;                            // least cost of the pairs not looked at; infinite: all were
  int plans = 0, refused = 0, unfit = 0, twins = 0;  // twins: plans that others stand for

  [[nodiscard]] double formula_per_s(const TunedDeployment& one) const { return one.rate_per_s > 0 ? one.rate_per_s : rate_per_s; }
  // Within the promise: simulated where that has found a rate, else by formula.
  [[nodiscard]] double carried_per_s(const TunedDeployment& one) const {
    const double simulated = one.simulated ? one.simulated->goodput_per_s : 0;
    return simulated > 0 && std::isfinite(simulated) ? simulated : formula_per_s(one);
  }
};

// Throws config::InputError, with the position in the section `serving`, where the job has no promise or no rate, leaves a side out or has
// prefix caches.
void check_tunable(const ServingJob& job, const config::Node& serving);

// Exact over all pairs of plans under the formula, for a promise of each of the two times; both in the same request is taken as each at the
// share whose square it is. Of a job that check_tunable() lets pass.
[[nodiscard]] ServingTuning tune_serving(const ServingJob& job, const std::function<void(double)>& progress);

// The job with those pools, at that rate of arrivals.
[[nodiscard]] ServingJob with_pools(const ServingJob& job, const TunedDeployment& deployment, double rate_per_s);

}  // namespace rehearse::sim
