// Equations (14), (15), (36)-(44), (6): what a plan is worth by each goal, as numbers that are to be small.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/job/job.hpp"
#include "sim/job/tune_keys.hpp"

namespace rehearse::sim {

inline constexpr std::size_t most_goals = 4;
using GoalArray = std::array<double, most_goals>;  // of which the first so many count as there are goals

class GoalValues {
 public:
  // `open`: the job without its plan. Refuses goals that lack what they need: a length of the training, a price.
  GoalValues(const TuneSpec& spec, const Job& open);

  [[nodiscard]] const std::vector<Goal>& goals() const { return goals_; }
  [[nodiscard]] std::size_t count() const { return goals_.size(); }

  // Of a job with its plan, its step and the memory that it needs. Throws config::InputError where the whole job takes longer than any may.
  [[nodiscard]] GoalArray of(const Job& job, double step_s, double needed_bytes) const;

  // No more than of() says of any step and memory that are at least these. Minus infinity of what does not grow with them.
  [[nodiscard]] GoalArray at_least(const Job& job, double step_s, double needed_bytes) const;

  // Whether the goal grows with the time of a step, and what its numbers are for people: "27.8 s", "412 tokens/s".
  [[nodiscard]] static std::string text(Goal goal, double value);
  // As results have it: throughputs and shares as they are, not their negatives.
  [[nodiscard]] static double shown(Goal goal, double value);

 private:
  [[nodiscard]] bool needs_whole_job() const;
  [[nodiscard]] double of_one(Goal goal, const Job& job, double step_s, double needed_bytes) const;
  [[nodiscard]] double cost(const Job& job, double seconds) const;

  std::vector<Goal> goals_;
  double gpu_hour_ = 0;
  bool whole_ = false;    // the job has a length
  bool by_time_ = false;  // which is a time
};

// Values that differ by less than a part in 10^12 are the same: rounded so, they can be put in order.
[[nodiscard]] double rounded(double value);

}  // namespace rehearse::sim
