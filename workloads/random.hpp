// Random numbers that are the same with every library, for routing that is drawn.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::workloads {

class Random {  // SplitMix64
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform();  // in (0, 1)
  double normal();   // Box and Muller 1958

 private:
  std::uint64_t state_;
};

// How many of n trials succeed, each with this probability: exact (inversion where few do, else Hoermann 1993's BTRS).
[[nodiscard]] std::int64_t binomial(std::int64_t n, double probability, Random& random);

// n draws among these shares, which add up to 1: how often each came.
[[nodiscard]] std::vector<double> multinomial(std::int64_t n, const std::vector<double>& shares, Random& random);

}  // namespace rehearse::workloads
