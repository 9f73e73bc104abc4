// Static batches by formula: one of so many sequences, and those of several instances that take turns.
#pragma once

#include <optional>
#include <vector>

#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

// A batch of so many sequences, of which ever fewer go on: how long it takes, and per token of an answer on average.
struct StaticBatch {
  double seconds = 0, first_s = 0, tpot_s = 0;
};
[[nodiscard]] StaticBatch static_batch(const PoolFormula& pool, const LoadMoments& load, double sequences);
// Seconds of batches of so many by how long the longest answer is, or the prompts where answers are alike; at equal shares.
[[nodiscard]] std::vector<double> unlike_batches(const PoolFormula& pool, const LoadMoments& load, int sequences, int shares);

// Of a mean request.
struct BatchesInTurn {
  StaticBatch met;
  double batch = 0, queue_s = 0;
  double waits = 0, longest_s = 0;  // the share that waits, and for how long at most
};
// Of instances of which each gets every n-th of arrivals at random; nothing where more wait than it looks at.
[[nodiscard]] std::optional<BatchesInTurn> batches_in_turn(const PoolFormula& pool, const LoadMoments& load, double rate_per_s, int turns);

}  // namespace rehearse::sim
