#include "sim/wholejob/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

namespace rehearse::sim {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

double deviation_of(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

}  // namespace

Statistics statistics_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto n = static_cast<double>(values.size());
  Statistics all{.count = static_cast<int>(values.size()), .mean = std::accumulate(values.begin(), values.end(), 0.0) / n};
  double half_width = 0;
  if (values.size() > 1) {
    constexpr double two_sided_95 = 0.975;
    all.deviation = deviation_of(values, all.mean);
    half_width = boost::math::quantile(boost::math::students_t(n - 1), two_sided_95) * all.deviation / std::sqrt(n);
  }
  all.low = all.mean - half_width;
  all.high = all.mean + half_width;
  all.p5 = percentile(values, 0.05);
  all.p50 = percentile(values, 0.50);
  all.p95 = percentile(values, 0.95);
  return all;
}

Statistics within(Statistics all, double least, double most) {
  all.low = std::max(all.low, least);
  all.high = std::min(all.high, most);
  return all;
}

}  // namespace rehearse::sim
