// The highest number up to a bound of which something holds that holds of all below it, by halving so often; the lower of both ends.
#pragma once

namespace rehearse::sim {

template <class Holds>
[[nodiscard]] double highest(double bound, int halvings, const Holds& holds) {
  double low = 0, high = bound;
  for (int round = 0; round < halvings; ++round) {
    const double middle = (low + high) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace rehearse::sim
