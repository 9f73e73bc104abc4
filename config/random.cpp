#include "config/random.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::config {
namespace {

// What Stirling's formula lacks of ln k!.
double stirling_rest(double k) {
  static const double small[] = {0.0810614667953272582,  0.0413406959554092941, 0.0276779256849983391, 0.0207906721037650931,
                                 0.0166446911898211921,  0.0138761288230707480, 0.0118967099458917701, 0.0104112652619720965,
                                 0.00925546218271273292, 0.00833056343336287126};
  if (k < 10) return small[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// One geometric gap between successes after the other.
std::int64_t by_inversion(std::int64_t n, double p, Random& random) {
  const double log_failure = std::log1p(-p);
  std::int64_t successes = 0;
  for (double at = 0;; ++successes) {
    at += std::ceil(std::log(random.uniform()) / log_failure);
    if (at > static_cast<double>(n)) return successes;
  }
}

// Wolfgang Hoermann, The generation of binomial random variates, J. Stat. Comput. Simul. 46 (1993), algorithm BTRS; n p >= 10, p <= 1/2.
std::int64_t by_rejection(double n, double p, Random& random) {
  const double deviation = std::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, v_r = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((n + 1) * p);
  while (true) {
    const double u = random.uniform() - 0.5;
    double v = random.uniform();
    const double us = 0.5 - std::abs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return static_cast<std::int64_t>(k);
    if (k < 0 || k > n) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (n - mode + 1))) + (n + 1) * std::log((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(odds * (n - k + 1) / (k + 1)) + stirling_rest(mode) + stirling_rest(n - mode) -
                         stirling_rest(k) - stirling_rest(n - k);
    if (v <= bound) return static_cast<std::int64_t>(k);
  }
}

}  // namespace

std::int64_t binomial(std::int64_t n, double probability, Random& random) {
  if (n <= 0 || probability <= 0) return 0;
  if (probability >= 1) return n;
  if (probability > 0.5) return n - binomial(n, 1 - probability, random);
  const auto trials = static_cast<double>(n);
  return trials * probability < 10 ? by_inversion(n, probability, random) : by_rejection(trials, probability, random);
}

// One share after the other, of what the ones before have left.
std::vector<double> multinomial(std::int64_t n, const std::vector<double>& shares, Random& random) {
  std::vector<double> came(shares.size(), 0.0);
  std::int64_t left = n;
  double share_left = 1;
  for (std::size_t i = 0; i < shares.size() && left > 0; ++i) {
    const bool last = i + 1 == shares.size();
    const std::int64_t successes = last ? left : binomial(left, std::min(1.0, shares[i] / share_left), random);
    came[i] = static_cast<double>(successes);
    left -= successes;
    share_left = std::max(0.0, share_left - shares[i]);
  }
  return came;
}

}  // namespace rehearse::config
