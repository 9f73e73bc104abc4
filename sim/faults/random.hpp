// Random numbers that are the same on every machine: the generator and the distributions are spelled out here.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace rehearse::sim {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): passes BigCrush, one word of state.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : state_(mix(seed) ^ mix(~stream)) {}

  std::uint64_t next() { return mix(state_ += golden_gamma); }

  // In (0, 1): never 0, so that its logarithm is finite. 53 bits.
  double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; }

  // A whole number in [0, n), n > 0.
  int below(int n) { return static_cast<int>(static_cast<double>(n) * uniform()); }

  double exponential(double mean) { return -mean * std::log(uniform()); }

  // Shape 1 is the exponential distribution; `scale` is its mean / gamma(1 + 1 / shape).
  double weibull(double scale, double shape) { return scale * std::pow(-std::log(uniform()), 1 / shape); }

  // Standard normal (Box and Muller 1958).
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  static constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15U;
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  std::uint64_t state_;
};

}  // namespace rehearse::sim
