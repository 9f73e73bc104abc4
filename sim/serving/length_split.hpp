// Prompts divided by their length among plans of one role: so many buckets of lengths in order, of which each plan gets some that follow
// one another (docs/serving.md, "Tuning").
#pragma once

#include <functional>
#include <vector>

#include "sim/serving/pair_search.hpp"

namespace rehearse::sim {

struct SplitProblem {
  std::size_t buckets = 1;      // from the shortest prompts on
  std::vector<SidePlan> plans;  // an instance costs as much as its GPUs, of a part all the same
  std::vector<int> inventory;   // GPUs by part
  // The least number of instances of a plan, of at most so many, that keep the promise for the requests of the buckets from one to before
  // another; no_number: none does.
  std::function<int(std::size_t plan, std::size_t from, std::size_t to, int most)> least_instances;
};

// Buckets that follow one another, and the instances that take them.
struct SplitPiece {
  std::size_t from = 0, to = 0, plan = 0;
  int instances = 0;
  bool operator==(const SplitPiece&) const = default;
};
struct Split {
  std::vector<SplitPiece> pieces;
  std::vector<int> taken;  // GPUs by part
  double cost = 0;
  int gpus = 0;
};

// Exact: every division of the buckets that no other beats in cost and in the GPUs of each part, from the cheapest on, of equal cost that
// with fewer GPUs first. Of a part only the plan with the fewest GPUs for some buckets can be in one.
[[nodiscard]] std::vector<Split> best_splits(const SplitProblem& problem);

}  // namespace rehearse::sim
