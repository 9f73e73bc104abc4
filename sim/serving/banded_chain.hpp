// The chances of the states of a Markov chain whose steps lead a limited way down and up, exactly: elimination from the last state down
// that never subtracts (Grassmann, Taksar and Heyman 1985).
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse::sim {

class BandedChain {
 public:
  // Steps from a state lead to those from `down` below it to `up` above it.
  BandedChain(int states, int down, int up)
      : states_(states), down_(down), up_(up), chances_(static_cast<std::size_t>(states) * static_cast<std::size_t>(down + up + 1), 0) {}

  [[nodiscard]] double& step(int from, int to) { return chances_[row(from) + static_cast<std::size_t>(to - from + down_)]; }
  // After many steps; `down` is at least 1. The steps are used up.
  [[nodiscard]] std::vector<double> settled() &&;
  // From each state until one of the first `ends` is reached: the chances of each of those, and the sum of `costs` (a step from each state)
  // on the way as the last column. The steps are used up.
  [[nodiscard]] std::vector<double> ended(int ends, const std::vector<double>& costs) &&;

 private:
  void eliminate(int down_to, std::vector<double>& costs);
  [[nodiscard]] std::size_t row(int from) const { return static_cast<std::size_t>(from) * static_cast<std::size_t>(down_ + up_ + 1); }
  int states_, down_, up_;
  std::vector<double> chances_;  // [from][to - from + down]
};

}  // namespace rehearse::sim
