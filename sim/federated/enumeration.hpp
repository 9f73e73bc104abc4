// Enumerates the choices that a bound leaves open. A choice costs each device something, and only choices whose costs add up to less than a
// budget can be better: partial choices that cost too much already are cut off with all that follow from them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/federated/problem.hpp"

namespace rehearse::federated {

struct Enumeration {
  std::vector<std::vector<double>> cost;    // [device][option]; infinity: never
  double budget = 0;                        // of the sum
  std::uint64_t nodes = 0;                  // most partial choices looked at
  std::function<bool(const Cuts&)> better;  // of a whole choice within the budget; true ends the enumeration
};

struct Enumerated {
  bool complete = false;  // no better choice is left
  std::uint64_t nodes = 0;
};
[[nodiscard]] Enumerated enumerate(const Enumeration& of);

}  // namespace rehearse::federated
