// States that come and go and are known by numbers, which are used again. Those of a lane of the machine (Machine::lane_of) are kept by
// themselves, so that lanes can go on at once; the upper bits of a number say which lane it is of.
#pragma once

#include <cstddef>
#include <vector>

namespace rehearse::sim {

template <class State, class Number, int place_bits>
class NumberedByLane {
 public:
  explicit NumberedByLane(std::size_t lanes = 1) : lanes_(lanes) {}
  // Before the first is taken.
  void divide(std::size_t lanes) { lanes_.resize(lanes); }

  [[nodiscard]] static std::size_t lane_of(Number number) { return number >> place_bits; }
  [[nodiscard]] static std::size_t place_of(Number number) { return number & ((Number{1} << place_bits) - 1); }

  // A new state, or one that was given back, as it was then.
  [[nodiscard]] Number take(std::size_t lane) {
    Lane& of = lanes_[lane];
    if (of.free.empty()) {
      of.states.emplace_back();
      return static_cast<Number>(lane << place_bits | (of.states.size() - 1));
    }
    const Number number = of.free.back();
    of.free.pop_back();
    return number;
  }
  void give(Number number) { lanes_[lane_of(number)].free.push_back(number); }

  [[nodiscard]] State& operator[](Number number) { return lanes_[lane_of(number)].states[place_of(number)]; }
  [[nodiscard]] const State& operator[](Number number) const { return lanes_[lane_of(number)].states[place_of(number)]; }
  template <class Visit>
  void each(Visit visit) {
    for (Lane& lane : lanes_) {
      for (State& state : lane.states) visit(state);
    }
  }

 private:
  struct alignas(64) Lane {
    std::vector<State> states;
    std::vector<Number> free;
  };
  std::vector<Lane> lanes_;
};

}  // namespace rehearse::sim
