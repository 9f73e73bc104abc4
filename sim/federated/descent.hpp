// Cuts by best responses: all devices that another cut would make cheaper move, or the half that saves most, a quarter, ... one.
#pragma once

#include <functional>

#include "sim/federated/cuts.hpp"

namespace rehearse::federated {

// What finds T* and its prices for given options, as least_deadline; or the decentralised protocol.
using DeadlineSolver = std::function<Deadline(std::span<const Option>, double known_s)>;

struct Descended {
  Cuts cuts;
  Deadline at;
  bool fixed_point = false;  // every device has its best response, so that these cuts are optimal (16)
  int solves = 0;
};
// Ends early where all savings together cannot shorten the round by more than about that part (`gap`).
[[nodiscard]] Descended descend(const Problem& problem, Cuts start, double gap = 0, const DeadlineSolver& solve = least_deadline);

}  // namespace rehearse::federated
