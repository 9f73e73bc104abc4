// What many runs say together.
#pragma once

#include <vector>

namespace rehearse::sim {

struct Statistics {
  int count = 0;
  double mean = 0, deviation = 0;   // sample standard deviation; 0 for one value
  double low = 0, high = 0;         // 95 % confidence interval of the mean (Student's t); the mean itself for one value
  double p5 = 0, p50 = 0, p95 = 0;  // percentiles, interpolated linearly between order statistics
};

// At least one value.
[[nodiscard]] Statistics statistics_of(std::vector<double> values);

// Of a quantity that lies between these two, as its mean does: the interval, which the t distribution knows nothing of that, ends there.
[[nodiscard]] Statistics within(Statistics all, double least, double most);

}  // namespace rehearse::sim
