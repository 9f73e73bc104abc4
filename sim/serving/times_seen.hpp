// Times with weights, told apart in bins: within which a share of them lies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace rehearse::sim {

// Weights of times that lie evenly in spans.
class TimesSeen {
 public:
  explicit TimesSeen(double bin_s) : bin_s_(bin_s) {}
  void add(double from_s, double to_s, double weight) {
    const auto from = static_cast<std::size_t>(from_s / bin_s_), to = std::max(from + 1, static_cast<std::size_t>(to_s / bin_s_ + 0.5));
    if (more_.size() <= to) more_.resize(2 * to + 1, 0);
    more_[from] += weight / static_cast<double>(to - from);
    more_[to] -= weight / static_cast<double>(to - from);
    all_ += weight;
    least_s_ = std::min(least_s_, from_s);
  }
  // To a bin; never below all of them.
  [[nodiscard]] double within_s(double share) const {
    double here = 0, before = 0;
    for (std::size_t bin = 0; bin < more_.size(); ++bin) {
      here += more_[bin];
      if (here > 0 && before + here >= share * all_)
        return std::max(least_s_, bin_s_ * (static_cast<double>(bin) + (share * all_ - before) / here));
      before += here;
    }
    return bin_s_ * static_cast<double>(more_.size());
  }

 private:
  double bin_s_, all_ = 0, least_s_ = std::numeric_limits<double>::infinity();
  std::vector<double> more_;  // than in the bin before
};

}  // namespace rehearse::sim
