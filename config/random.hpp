// Random numbers that are the same on every machine and with every library: the generator and the distributions are spelled out here.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace rehearse::config {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): passes BigCrush, one word of state.
inline constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15U;
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}

  std::uint64_t next() { return mixed(state_ += golden_gamma); }

  // In (0, 1): never 0, so that its logarithm is finite. 53 bits.
  double uniform() { return (static_cast<double>(next() >> 11U) + 0.5) * 0x1p-53; }

  // Standard normal (Box and Muller 1958).
  double normal() {
    const double radius = uniform(), angle = uniform();  // drawn in this order by every compiler
    return std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle);
  }

 private:
  std::uint64_t state_;
};

// How many of n trials succeed, each with this probability: exact (inversion where few do, else Hoermann 1993's BTRS).
[[nodiscard]] std::int64_t binomial(std::int64_t n, double probability, Random& random);

// n draws among these shares, which add up to 1: how often each came.
[[nodiscard]] std::vector<double> multinomial(std::int64_t n, const std::vector<double>& shares, Random& random);

}  // namespace rehearse::config
