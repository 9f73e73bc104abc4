// How far times of answers lie apart, of sequences whose passes hold more or fewer prompts than others'.
#include <algorithm>

#include "sim/serving/unlike_passes.hpp"

namespace rehearse::sim {
namespace {

constexpr int tokens_followed = 30;  // behind a prompt

double between_tokens(const std::vector<double>& variance, double tokens) {
  const auto known = static_cast<double>(variance.size());
  const double each = variance.size() > 1 ? variance.back() - variance[variance.size() - 2] : variance.back();
  if (tokens >= known) return variance.back() + (tokens - known) * each;
  const auto whole = static_cast<std::size_t>(tokens);
  const double low = whole > 0 ? variance[whole - 1] : 0;
  return low + (tokens - static_cast<double>(whole)) * (variance[whole] - low);
}

}  // namespace

double PromptPasses::by_prompt_s() const {
  const double share = std::clamp(1 - queue_.beside_s[0] / token_s_, 0.0, nearly_all);  // of the time, that prompts take
  return share / (queue_.rate_per_s * (1 - share));
}

// So many prompts come at random, or of those in turn as much more evenly; no pass is longer than a full one.
std::vector<double> QueuedPasses::variances(const std::vector<double>& tokens, const std::vector<double>& answers_s) const {
  std::vector<double> out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double prompts = queue_.rate_per_s * answers_s[i] / queue_.turns, least_s = tokens[i] * queue_.beside_s[0];
    const double variance = by_prompt_s() * by_prompt_s() * prompts, most_s = tokens[i] * queue_.beside_s.back();
    out.push_back(queue_.mixes ? std::min(variance, std::max(0.0, (answers_s[i] - least_s) * (most_s - answers_s[i]))) : variance);
  }
  return out;
}

std::vector<double> UnlikePasses::variances(const std::vector<double>& tokens, const std::vector<double>& /*answers_s*/) const {
  const std::vector<double> known = queue_.mixes ? variances_of_mixed() : variances_of_drained();
  std::vector<double> out;
  for (const double number : tokens) out.push_back(between_tokens(known, number));
  return out;
}

// By state: its chance, and its chance times the mean of the seconds until then. The square of those grows alike wherever a pass leads.
std::vector<double> UnlikePasses::variances_of_mixed() const {
  std::vector<double> out;
  PhasedChances at = behind_, seconds(queue_.turns, units_);
  double square = 0;
  const double tokens = std::min<double>(tokens_followed, queue_.most_tokens + 1);
  while (true) {
    for (int phase = 0; phase < queue_.turns; ++phase) {
      for (int units = 0; units < units_; ++units) {
        const auto i = static_cast<std::size_t>(units);
        const double pass_s = queue_.beside_s[static_cast<std::size_t>(taken(units))], chance = at.of(phase)[i];
        square += pass_s * (2 * seconds.of(phase)[i] + pass_s * chance);
        seconds.of(phase)[i] += pass_s * chance;
      }
    }
    const double mean_s = seconds.sum();
    out.push_back(std::max(0.0, square - mean_s * mean_s));
    if (static_cast<double>(out.size()) >= tokens) return out;
    at = stepped(at, beside_);
    seconds = stepped(seconds, beside_);
  }
}

// Between two passes of decoding alone the time is another one each time, whose square follows from the same chain.
std::vector<double> UnlikePasses::variances_of_drained() const {
  const int turns = queue_.turns;
  const double first_s = of_ended(ends_, behind_, turns), first = std::max(0.0, of_ended(squares_, behind_, turns) - first_s * first_s);
  double mean_s = 0, square = 0;
  for (int phase = 0; phase < turns; ++phase) {
    const PhasedChances& come = beside_[0][static_cast<std::size_t>(phase)];
    mean_s += of_ended(ends_, come, turns) / turns;
    square += of_ended(squares_, come, turns) / turns;
  }
  return {first, first + std::max(0.0, square - mean_s * mean_s)};
}

}  // namespace rehearse::sim
