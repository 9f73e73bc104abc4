#include "sim/serving/company.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace rehearse::sim {
namespace {

constexpr double counted_one_by_one = 24;
constexpr double far = 10;  // deviations of a Poisson number, to begin with
constexpr double hardly_any = 1e-7;
constexpr double huge = 1e100;
constexpr double never_beside = 1024;  // as many: where passes grow faster than their sequences more would be ever likelier
constexpr double widest = 25;          // its variance as a multiple of Poisson's
// Of the normal distribution, in the middle of nine equal shares.
constexpr std::array<double, 9> ninths{-1.5932, -0.9674, -0.5895, -0.2822, 0, 0.2822, 0.5895, 0.9674, 1.5932};
constexpr double spread_of_ninths = 0.9317;  // of these points

struct Numbers {
  std::vector<double> chances, less_likely;  // of so many

  // They come at the rate that has this mean (Newton, between bounds: where passes jump it goes to and fro).
  void come_with_mean(double wanted) {
    constexpr int rounds = 100;
    constexpr double near = 1e-10;
    const auto at = static_cast<std::size_t>(wanted);
    double come_per_s = less_likely[at] + (wanted - std::floor(wanted)) * (less_likely[at + 1] - less_likely[at]);
    double low = 0, high = INFINITY;
    for (int round = 0; round < rounds; ++round) {
      const auto [mean, variance] = moments_at(come_per_s);
      if (std::abs(mean - wanted) <= near * wanted) return;
      (mean < wanted ? low : high) = come_per_s;
      come_per_s *= std::exp(std::clamp((wanted - mean) / std::max(variance, near * wanted), -1.0, 1.0));
      if (low > 0 && std::isfinite(high) && (come_per_s <= low || come_per_s >= high)) come_per_s = std::sqrt(low * high);
    }
  }
  std::pair<double, double> moments_at(double come_per_s) {
    chances.assign(less_likely.size(), 1);
    double sum = 1, mean = 0, square = 0;
    for (std::size_t number = 1; number < chances.size(); ++number) {
      const double chance = chances[number] = chances[number - 1] * come_per_s / less_likely[number];
      const auto value = static_cast<double>(number);
      sum += chance;
      mean += chance * value;
      square += chance * value * value;
      if (chance < huge) continue;  // on the way to the rate there may be more at the end than a number holds
      for (std::size_t before = 0; before <= number; ++before) chances[before] /= huge;
      for (double* of : {&sum, &mean, &square}) *of /= huge;
    }
    for (double& chance : chances) chance /= sum;
    return {mean / sum, square / sum - mean * mean / (sum * sum)};
  }
};

}  // namespace

Company::Company(double each, int instances, const std::function<double(double)>& pass_s, double bunched) {
  const double all = each * instances;
  // Than one fewer; by how much passes are longer and by who came together.
  const auto less_likely = [&](double number) {
    const double q = std::floor(number / instances), fuller = number - q * instances;
    const double ended_per_s = fuller * (q + 1) / pass_s(q + 1) + (q > 0 ? (instances - fuller) * q / pass_s(q) : 0);
    const double longer = number / (ended_per_s * pass_s(1)), more = longer + (number - 1) * bunched;
    return more > 0 ? number / more : INFINITY;
  };
  if (all < counted_one_by_one) {
    count(all, instances, less_likely);
    return;
  }
  // Around its mean normal, as wide as the rate at which they end grows slowly.
  const double reach = std::sqrt(all), growth = std::log(less_likely(all + reach) / less_likely(all - reach)) / (2 * reach);
  const double deviation = std::sqrt(1 / std::max(growth, 1 / (widest * all)));
  for (const double at : ninths) add(std::max(0.0, all + at / spread_of_ninths * deviation), 1.0 / ninths.size(), instances);
}

void Company::count(double all, int instances, const std::function<double(double)>& less_likely) {
  Numbers numbers{{1}, {0}};
  for (double most = all + far * (std::sqrt(all) + 1); numbers.chances.back() > hardly_any && most < never_beside; most *= 2) {
    while (static_cast<double>(numbers.less_likely.size()) <= most)
      numbers.less_likely.push_back(less_likely(static_cast<double>(numbers.less_likely.size())));
    numbers.come_with_mean(all);
  }
  for (std::size_t number = 0; number < numbers.chances.size(); ++number)
    add(static_cast<double>(number), numbers.chances[number], instances);
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
