// What histories of faults draw.
#pragma once

#include <cmath>
#include <cstdint>

#include "config/random.hpp"

namespace rehearse::sim {

class Random : public config::Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : config::Random(config::mixed(seed) ^ config::mixed(~stream)) {}

  // A whole number in [0, n), n > 0.
  int below(int n) { return static_cast<int>(static_cast<double>(n) * uniform()); }

  double exponential(double mean) { return -mean * std::log(uniform()); }

  // Shape 1 is the exponential distribution; `scale` is its mean / gamma(1 + 1 / shape).
  double weibull(double scale, double shape) { return scale * std::pow(-std::log(uniform()), 1 / shape); }
};

}  // namespace rehearse::sim
