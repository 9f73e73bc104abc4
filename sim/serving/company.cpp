#include "sim/serving/company.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse::sim {
namespace {

constexpr double counted_one_by_one = 24;
// Of the normal distribution, in the middle of nine equal shares.
constexpr std::array<double, 9> ninths{-1.5932, -0.9674, -0.5895, -0.2822, 0, 0.2822, 0.5895, 0.9674, 1.5932};
constexpr double spread_of_ninths = 0.9317;  // of these points

}  // namespace

Company::Company(double each, int instances) {
  const double all = each * instances;
  if (all < counted_one_by_one) {
    const int most = static_cast<int>(all + 6 * std::sqrt(all) + 6);
    double chance = std::exp(-all);
    for (int number = 0; number <= most; chance *= all / ++number) add(number, chance, instances);
    return;
  }
  for (const double at : ninths) add(std::round(all + at / spread_of_ninths * std::sqrt(all)), 1.0 / ninths.size(), instances);
}

// With one more there are q or q + 1 on each instance; it is one of those.
void Company::add(double all, double chance, int instances) {
  const double q = std::floor((all + 1) / instances), fuller = all + 1 - q * instances;
  const double in_fuller = fuller * (q + 1) / (all + 1);
  if (in_fuller > 0) points_.push_back({q, chance * in_fuller});
  if (in_fuller < 1) points_.push_back({q - 1, chance * (1 - in_fuller)});
  nobody_ += chance * std::max(0.0, 1 - all / instances);
}

}  // namespace rehearse::sim
