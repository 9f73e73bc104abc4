#include "sim/serving/token_spread.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rehearse::sim {
namespace {

// Of a time above the least: mean and variance.
struct Above {
  double least_s = 0, mean_s = 0, variance = 0;
  // Share of them within so long (Wilson and Hilferty: the cube root of a gamma variable is normal).
  [[nodiscard]] double within(double seconds) const {
    if (seconds <= least_s) return 0;
    if (mean_s <= 0 || variance <= 0) return seconds >= least_s + mean_s ? 1 : 0;
    const double ninth = variance / (9 * mean_s * mean_s);
    const double deviations = (std::cbrt((seconds - least_s) / mean_s) - (1 - ninth)) / std::sqrt(ninth);
    return std::erfc(-deviations / std::numbers::sqrt2) / 2;
  }
};

// What one sequence more does to how many there are at the beginnings of passes behind its first token: it is there until its answer ends,
// those there stay longer by a share `longer` of a pass each, and `come` come in a pass. Lengths in steps of `passes`.
class MoreSequences {
 public:
  MoreSequences(const std::vector<double>& answers, double longer, double come)
      : passes_(std::max(1.0, std::ranges::max(answers) / steps_of_the_longest)) {
    for (int step = 0; step < steps_of_the_longest; ++step)
      there_.push_back(static_cast<double>(std::ranges::count_if(answers, [&](double one) { return one > (step + 0.5) * passes_; })) /
                       static_cast<double>(answers.size()));
    const double bring = come * passes_ * longer;
    std::vector<double> came, more;
    for (int step = 0; step < times_as_long * steps_of_the_longest; ++step) {
      double sum = step == 0 ? there_[0] : 0;
      for (int before = std::max(0, step - steps_of_the_longest + 1); before < step; ++before)
        sum += there_[static_cast<std::size_t>(step - before)] * came[static_cast<std::size_t>(before)];
      more.push_back(sum / (1 - std::min(most_at_once, bring * there_[0])));
      came.push_back((step == 0 ? 1 : 0) + bring * more.back());
      sums_.push_back(sums_.back() + more.back());
      squares_ += more.back() * more.back() * passes_;
    }
  }
  [[nodiscard]] double passes() const { return passes_; }
  // Sequences more, times passes, until so many steps behind it.
  [[nodiscard]] double until(double step) const {
    const double last = static_cast<double>(sums_.size() - 1), at = std::clamp(step, 0.0, last), low = std::min(std::floor(at), last - 1);
    const auto i = static_cast<std::size_t>(low);
    return passes_ * (sums_[i] + (at - low) * (sums_[i + 1] - sums_[i]));
  }
  [[nodiscard]] double squares() const { return squares_; }  // of the sequences more, summed over the passes
  [[nodiscard]] int lasts() const { return static_cast<int>(sums_.size()) - 1; }

 private:
  static constexpr int steps_of_the_longest = 48, times_as_long = 4;
  static constexpr double most_at_once = 0.9;
  double passes_, squares_ = 0;
  std::vector<double> there_, sums_{0};
};

// Those who come in a pass, what the prompt of one makes an answer longer by, and what one sequence more does.
struct Coming {
  double a_pass = 0, prompt_s = 0, sequence_s = 0;
  double brings = 0;     // others that come while the prompt makes a pass longer
  double variation = 0;  // of the prompts' tokens
};

// Of how long an answer of so many tokens takes, the variance that others make who decode beside it, and that this has in common with what
// their prompts make: a sum over those who come in each pass, before it began or meanwhile (linear noise; small against the mean). Each is
// as many more as it brings.
double variance_beside(const MoreSequences& more, double tokens, const Coming& come) {
  const double each = 1 + come.brings, squares = each * each + come.brings * come.brings * come.variation,
               common = 1 + come.brings * (1 + come.variation), length = tokens / more.passes();
  double sum = 0;
  for (int step = 0; step < more.lasts(); ++step) {
    const double seconds = come.sequence_s * (more.until(step + 0.5 + length) - more.until(step + 0.5));
    sum += seconds * seconds * squares;
  }
  for (double left = length; left > 0; left -= 1) {
    const double seconds = come.sequence_s * more.until(std::max(left - 0.5, left / 2));
    sum += std::min(1.0, left) * (seconds * seconds * squares + 2 * seconds * come.prompt_s * common);
  }
  return sum * come.a_pass * more.passes();
}

double variance_of(const Company& others) {
  const double mean = others.mean([](double number) { return number; });
  return others.mean([&](double number) { return (number - mean) * (number - mean); });
}

}  // namespace

double token_within_s(const PoolFormula& pool, const LoadMoments& load, const PassQueue& queue, const PromptPasses& passes,
                      const Company& others, const std::vector<double>& answers_s) {
  if (answers_s.empty()) return 0;
  const std::vector<double> variances = passes.variances(pool.step_passes(), answers_s);
  const double beside = 1 + others.mean([](double number) { return number; });
  const double longer = (pool.decode_s(beside + 1) - pool.decode_s(beside)) / pool.decode_s(beside);  // a pass by one more, as a share
  const double pass_s = passes.token_s(), brings = queue.rate_per_s * passes.by_prompt_s();
  Coming come{queue.rate_per_s * pass_s, passes.by_prompt_s(), longer * pass_s, brings, load.input_variation};
  const MoreSequences more(pool.step_passes(), longer, come.a_pass);
  // There are no more than company has, which knows of places and of long passes.
  const double noise = come.a_pass / queue.turns * more.squares() * (1 + brings) * (1 + brings);
  come.sequence_s *= std::sqrt(std::min(1.0, variance_of(others) / noise));
  std::vector<Above> answers;
  for (std::size_t i = 0; i < answers_s.size(); ++i) {
    const double tokens = pool.step_passes()[i], a_token = 1 / load.steps[i], seconds = answers_s[i];
    const double sum = variances[i] + variance_beside(more, tokens, come) / queue.turns;
    const double least_s = std::min(tokens * pool.decode_s(1.0), seconds);
    answers.push_back({least_s * a_token, (seconds - least_s) * a_token, sum * a_token * a_token});
  }
  double low = 0, high = 0;
  for (const Above& one : answers) high = std::max(high, one.least_s + one.mean_s + 20 * std::sqrt(one.variance));
  for (int round = 0; round < 60; ++round) {
    const double middle = (low + high) / 2;
    double within = 0;
    for (const Above& one : answers) within += one.within(middle) / static_cast<double>(answers.size());
    (within < load.percentile ? low : high) = middle;
  }
  return high;
}

}  // namespace rehearse::sim
