// Several plans in one role: so many instances of each that they carry a rate together at the least cost, an integer program
// (docs/serving.md, "Tuning").
#pragma once

#include <optional>
#include <vector>

namespace rehearse::sim {

// One plan of a role. Its instances cost what their GPUs do.
struct CoverPlan {
  std::size_t role = 0, part = 0;
  int gpus = 1;
  double rate_per_s = 0;  // that one instance carries
};

struct CoverProblem {
  std::vector<CoverPlan> plans;
  std::size_t roles = 1;            // each of them carries the rate; at most 2
  std::vector<int> inventory;       // GPUs by part, which the roles share
  std::vector<double> price_per_s;  // of one GPU by part
  double rate_per_s = 0;
};

struct Cover {
  std::vector<int> numbers;  // of instances, by plan
  double cost_per_s = 0;
  int gpus = 0;
};

// Exact: the most that so many GPUs of a part carry, by dynamic programming over their number; of each role every division of its GPUs over
// the parts of which none can be spared; of two roles the cheapest two that the inventory holds together, by cost until none can be
// cheaper. Of equal cost the one with fewer GPUs. Nothing where the inventory does not carry the rate.
[[nodiscard]] std::optional<Cover> cheapest_cover(const CoverProblem& problem);

}  // namespace rehearse::sim
