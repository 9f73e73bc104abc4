// The best plans of a space: every point is refused by a rule, evaluated by what `predict` evaluates with, or cut by a floor that shows it
// cannot be among the best. What is cut depends on the space alone, so that the same search gives the same numbers on any number of threads
// and tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "sim/report/expected_band.hpp"
#include "sim/tune/found.hpp"
#include "sim/tune/goal_values.hpp"
#include "sim/tune/space.hpp"

namespace rehearse::sim {

// What to leave out without evaluating it.
struct Bounds {
  bool by_memory = true;             // what holds weights, gradients and optimizer states alone that do not fit
  bool by_row = true;                // what does not fit with a smaller micro-batch
  bool by_floor = true;              // what computation alone keeps from being among the best
  std::uint64_t look_from = 20'000;  // points of a space of which a first look pays for itself
  [[nodiscard]] static Bounds none() { return {false, false, false, std::numeric_limits<std::uint64_t>::max()}; }
};

// What a plan must reach to matter, known before the first block is searched.
struct Threshold {
  bool found = false;  // some plan fits
  // Of the first goal: a good plan's; and what so many plans as are kept do not exceed.
  double best = std::numeric_limits<double>::infinity(), kept = std::numeric_limits<double>::infinity();
  std::vector<Candidate> front = {};
  // How bad the best plan with a value of a key can be before nobody asks how bad it is: a quarter worse than the good plan.
  [[nodiscard]] double of_value() const;
};

class Search {
 public:
  // `space` and `spec` must outlive it. Takes a first look at the space where there are bounds. `every`: also what is not among the best is
  // found. `stop`: as run has it; once it is true, the search can only be run with it.
  Search(const Space& space, const TuneSpec& spec, const Bounds& bounds, bool every = false, const std::atomic<bool>* stop = nullptr);

  // Contiguous parts of the space, each of one base.
  [[nodiscard]] std::uint64_t blocks() const { return (space_.size() + block_points_ - 1) / block_points_; }
  [[nodiscard]] const GoalValues& goals() const { return goals_; }
  [[nodiscard]] const Bounds& bounds() const { return bounds_; }
  [[nodiscard]] const Threshold& threshold() const { return threshold_; }
  [[nodiscard]] bool every() const { return every_; }
  // Of which plans keep clear; null: the formula is taken at its word.
  [[nodiscard]] const MeasuredErrors* errors() const { return errors_ ? &*errors_ : nullptr; }
  [[nodiscard]] Found nothing() const { return {space_, static_cast<std::size_t>(spec_.keep), goals_.count(), every_}; }

  // The blocks for which `mine` holds, on so many threads, in any order. `done` is called with what each block holds, one at a time; when
  // `stop` becomes true, blocks under way are given up and no more are begun. `points` counts as they are decided. What a thread throws is
  // thrown here.
  void run(int threads, const std::function<bool(std::uint64_t)>& mine, const std::function<void(std::uint64_t, const Found&)>& done,
           const std::atomic<bool>& stop, std::atomic<std::uint64_t>& points) const;
  // All of them.
  [[nodiscard]] Found run(int threads) const;

 private:
  const Space& space_;
  const TuneSpec& spec_;
  Bounds bounds_;
  GoalValues goals_;
  std::uint64_t block_points_ = 1;
  bool every_;
  std::optional<MeasuredErrors> errors_;
  Threshold threshold_;
};

}  // namespace rehearse::sim
