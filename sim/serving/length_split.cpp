#include "sim/serving/length_split.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace rehearse::sim {
namespace {

bool beats(const Split& one, const Split& other) {
  if (one.cost > other.cost) return false;
  for (std::size_t part = 0; part < one.taken.size(); ++part) {
    if (one.taken[part] > other.taken[part]) return false;
  }
  return true;
}

void keep_unbeaten(std::vector<Split>& all, Split one) {
  if (std::ranges::any_of(all, [&](const Split& other) { return beats(other, one); })) return;
  std::erase_if(all, [&](const Split& other) { return beats(one, other); });
  all.push_back(std::move(one));
}

// The plan of a part that takes these buckets with the fewest GPUs: of each one only less than the best so far is asked about.
std::optional<SplitPiece> piece_of(const SplitProblem& problem, std::size_t part, std::size_t from, std::size_t to) {
  std::optional<SplitPiece> best;
  int within = problem.inventory[part];
  for (std::size_t plan = 0; plan < problem.plans.size(); ++plan) {
    const SidePlan& side = problem.plans[plan];
    if (side.part != part || within < side.gpus) continue;
    const int number = problem.least_instances(plan, from, to, within / side.gpus);
    if (number == no_number) continue;
    best = SplitPiece{from, to, plan, number};
    within = number * side.gpus - 1;
  }
  return best;
}

}  // namespace

std::vector<Split> best_splits(const SplitProblem& problem) {
  std::vector<std::vector<Split>> up_to(problem.buckets + 1);  // [buckets] that are divided
  up_to[0].push_back({{}, std::vector<int>(problem.inventory.size(), 0), 0, 0});
  for (std::size_t to = 1; to <= problem.buckets; ++to) {
    for (std::size_t from = 0; from < to; ++from) {
      for (std::size_t part = 0; part < problem.inventory.size(); ++part) {
        const auto piece = piece_of(problem, part, from, to);
        if (!piece) continue;
        const SidePlan& plan = problem.plans[piece->plan];
        for (const Split& before : up_to[from]) {
          Split split = before;
          split.pieces.push_back(*piece);
          split.taken[part] += piece->instances * plan.gpus;
          split.gpus += piece->instances * plan.gpus;
          split.cost += piece->instances * plan.cost;
          if (split.taken[part] <= problem.inventory[part]) keep_unbeaten(up_to[to], std::move(split));
        }
      }
    }
  }
  std::ranges::stable_sort(up_to.back(), {}, [](const Split& one) { return std::tuple(one.cost, one.gpus); });
  return std::move(up_to.back());
}

}  // namespace rehearse::sim
