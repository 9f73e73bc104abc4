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

  [[nodiscard]] double& step(int from, int to) { return chances_[place(from, to)]; }

 private:
  friend class SolvedChain;
  [[nodiscard]] double step(int from, int to) const { return chances_[place(from, to)]; }
  [[nodiscard]] std::size_t place(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(down_ + up_ + 1) + static_cast<std::size_t>(to - from + down_);
  }
  int states_, down_, up_;
  std::vector<double> chances_;  // [from][to - from + down]
};

// A chain whose states were eliminated one by one, from the last on; `down` is at least 1.
class SolvedChain {
 public:
  explicit SolvedChain(BandedChain chain);
  // After many steps.
  [[nodiscard]] std::vector<double> settled() const;
  // From each state until one of the first `ends` is reached: the chances of each of those, and the sum of `costs` (a step from each state)
  // on the way as the last column.
  [[nodiscard]] std::vector<double> ended(int ends, std::vector<double> costs) const;

 private:
  [[nodiscard]] int lowest(int from) const { return from > chain_.down_ ? from - chain_.down_ : 0; }
  BandedChain chain_;           // from the others up as often as one gets there, and down from one as shares
  std::vector<double> leaves_;  // by state: the chance that a step from it leads below it
};

}  // namespace rehearse::sim
