// Serving jobs drawn at random, at a share of what their formula says that they carry.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "config/random.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/load_moments.hpp"

namespace rehearse::tests {

[[nodiscard]] inline std::string one_of(config::Random& random, const std::vector<std::string>& some) {
  return some[static_cast<std::size_t>(random.uniform() * static_cast<double>(some.size()))];
}

// A job whose last line is its load's, left open.
[[nodiscard]] inline sim::ServingJob at(const std::string& text, double rate_per_s) {
  return sim::read_serving_job(config::Node::load_text(fmt::format("{}, arrivals: {{poisson: {} /s}}}}\n", text, rate_per_s), "job.yaml"),
                               "job");
}

// The highest rate that the formula carries, to 5 %.
[[nodiscard]] inline double carried_per_s(const std::string& text) {
  double low = 1e-3, high = 1e3;
  while (high > 1.05 * low) {
    const double middle = std::sqrt(low * high);
    const sim::ServingJob job = at(text, middle);
    (predict_serving(job, deploy(job), sim::moments_of(job.load, job.seed).input).overloaded.empty() ? low : high) = middle;
  }
  return low;
}

struct DrawnJob {
  std::string text;
  double load;  // share of what it carries
};

// The job of that number, of `seed` or of REHEARSE_SEED.
template <typename Drawn>
DrawnJob drawn_job(int number, std::uint64_t seed) {
  const char* other = std::getenv("REHEARSE_SEED");
  Drawn drawn(other != nullptr ? std::strtoull(other, nullptr, 10) : seed);
  DrawnJob job;
  for (int i = 0; i <= number; ++i) {
    job.text = drawn.next();
    job.load = drawn.load();
  }
  return job;
}

}  // namespace rehearse::tests
