// How a pass takes prompts, by formula: the units that they are cut into, so that a chain counts whole ones (pass_queue.hpp).
#pragma once

#include <vector>

#include "sim/serving/pass_queue.hpp"
#include "sim/serving/pool_formula.hpp"

namespace rehearse::sim {

// Beside so many sequences, for a chain of instances that take turns or not; coarsely: unlike prompts in units of a mean one.
class PassUnits {
 public:
  PassUnits(const PoolFormula& pool, double sequences, int turns, bool coarsely = false);
  // With u units of prompts.
  [[nodiscard]] double seconds(const PoolFormula& pool, int u, double sequences) const;
  [[nodiscard]] int units() const { return units_; }  // of equal prompts
  [[nodiscard]] int most() const { return most_; }
  [[nodiscard]] double prompts_of_a_pass() const { return most_ / mean_units_; }
  // What comes at an instance, one of `turns`, as prompts meet it.
  [[nodiscard]] PassQueue queue(const PoolFormula& pool, double rate_per_s, int turns, double sequences) const;

 private:
  void cut_equal(const PoolFormula& pool, double sequences);
  void cut_unlike(const PoolFormula& pool, double sequences, double parts, int most_units);
  int units_ = 1, most_ = 1;
  double mean_units_ = 1;
  double weight_ = 1;  // of pieces, so that those of a prompt alone take as long as its passes
  std::vector<double> sizes_;
};

}  // namespace rehearse::sim
