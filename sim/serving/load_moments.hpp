// What a formula knows of a load: means over its requests, and what their spread means for a queue.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/serving/length_range.hpp"
#include "workloads/serving/load.hpp"

namespace rehearse::sim {

struct LoadMoments {
  double input = 0, output = 0;  // tokens, mean
  double found = 0;              // of the prompt's tokens, in the cache where it is computed, mean
  double input_variation = 0;    // squared: variance over squared mean, of the tokens that are computed
  double pair_factor = 1;        // pairs of query and key of all prompts over those of so many mean ones
  double context = 0;            // of a decoding sequence: a request is seen in proportion to its answer
  double rate_per_s = 0;         // of arrivals; 0: none
  double arrival_variation = 1;  // squared
  // Tokens behind the first of answers that have any: at equal shares of them, from the shortest to the longest; of equal answers one.
  std::vector<double> steps;
  double step_share = 1;  // of the answers, that have any
  // Of what lies before the second token, the share that it has of the time per token: a mean over answers that have one.
  [[nodiscard]] double step_share_of_one() const {
    double sum = 0;
    for (const double number : steps) sum += 1 / number;
    return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
  }
  // Of the answers that have any, those of the percentile's short one; `steps` must not be empty.
  [[nodiscard]] double short_steps() const { return steps[short_place()]; }
  [[nodiscard]] std::size_t short_place() const {
    return std::min(static_cast<std::size_t>((1 - percentile) * static_cast<double>(steps.size())), steps.size() - 1);
  }
  double percentile = 0;                                            // of the requests, for which PoolState's high times are; 0: none
  std::shared_ptr<const std::vector<workloads::Lengths>> requests;  // what it is of
  std::vector<double> found_in_order;                               // tokens of their prompts; empty: nothing is found
  std::size_t counted_from = 0;                                     // those before fill the caches alone
  bool taken_out = false;                                           // of a larger load: who is done here comes again elsewhere, too
  std::vector<double> inputs;                                       // prompts, sorted: a share of them is no longer than that place says
  [[nodiscard]] double input_at(double share) const;                // tokens
};

[[nodiscard]] LoadMoments moments_of(const workloads::LoadSpec& load, std::uint64_t seed);

// Puts there what every prompt finds in a cache, in the order of the requests, of which those from some on count (all, where these are
// none).
void put_found(LoadMoments& load, std::vector<double> found, std::size_t counted_from);

// The share of the requests whose prompts are that long; and the load that they are, which must be some, taken out at random from the
// others.
[[nodiscard]] double share_within(const LoadMoments& load, const LengthRange& range);
[[nodiscard]] LoadMoments load_within(const LoadMoments& load, const LengthRange& range);

}  // namespace rehearse::sim
