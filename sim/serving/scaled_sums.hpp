// Sums over long rows of chances, four numbers at a time: the same sums, number by number, for which -O2 otherwise takes no vectors.
#pragma once

#include <cstddef>

namespace rehearse::sim {

// to[i] += times * from[i]; the two do not overlap.
inline void add_scaled(double* __restrict to, const double* __restrict from, double times, int number) {
  int i = 0;
  for (; i + 4 <= number; i += 4) {
    to[i] += times * from[i];
    to[i + 1] += times * from[i + 1];
    to[i + 2] += times * from[i + 2];
    to[i + 3] += times * from[i + 3];
  }
  for (; i < number; ++i) to[i] += times * from[i];
}

}  // namespace rehearse::sim
