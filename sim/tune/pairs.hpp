// The best first goal of plans with each pair of values of two keys: what a map of two keys shows.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/tune/space.hpp"

namespace rehearse::sim {

class Pairs {
 public:
  static constexpr std::size_t most_values = 32;  // of a key that is on a map
  explicit Pairs(const Space& space);

  // Axes of at least two values, and no more than a map can show, in the order of the space.
  [[nodiscard]] const std::vector<std::size_t>& axes() const { return axes_; }
  // `one` before `other`, both of axes(), with the place of a value of each. Infinite where no plan is known.
  [[nodiscard]] double best(std::size_t one, std::size_t value, std::size_t other, std::size_t other_value) const;

  void add(const Space& space, std::uint64_t point, double goal);
  // Whether for each pair of the point's values a plan better than this is known.
  [[nodiscard]] bool all_below(const Space& space, std::uint64_t point, double goal) const;
  void merge(const Pairs& other);

  [[nodiscard]] const std::vector<double>& all() const { return best_; }
  // As all() of the same search gave them; throws std::out_of_range where there are not as many.
  void set(const std::vector<double>& best);

 private:
  // Calls `use` with the place in best_ of each pair of the point's values, until it returns false; whether it never did.
  template <class Use>
  bool each(const Space& space, std::uint64_t point, Use use) const;

  std::vector<std::size_t> axes_;
  std::vector<std::size_t> values_;  // [place in axes_]
  std::vector<std::size_t> offset_;  // [pair] of the first value of both, pairs in the order (0, 1), (0, 2), ..., (1, 2), ...
  std::vector<double> best_;
};

}  // namespace rehearse::sim
