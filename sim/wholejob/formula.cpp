#include "sim/wholejob/formula.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

double interrupted_per_effective(const FormulaInput& input) {
  const double per_failure_s = input.repair_s + input.interval_steps / 2 * input.step_s;
  return input.failures_per_s * per_failure_s + input.save_s / (input.interval_steps * input.step_s);
}

FormulaResult formula(const FormulaInput& input) {
  FormulaResult result;
  result.effective_s = input.steps * input.step_s;
  result.failures = input.failures_per_s * result.effective_s;
  result.interrupted_s = input.init_s + result.effective_s * interrupted_per_effective(input);
  result.ettr = result.effective_s / result.total_s();
  result.mttf_s = input.failures_per_s > 0 ? 1 / input.failures_per_s : 0;
  return result;
}

double optimum_interval_s(const FormulaInput& input) { return std::sqrt(2 * input.save_s / input.failures_per_s); }

std::int64_t optimum_interval_steps(const FormulaInput& input) {
  const double most = std::max(1.0, input.steps);
  if (input.save_s <= 0) return 1;
  const double best = input.failures_per_s > 0 ? std::min(most, optimum_interval_s(input) / input.step_s) : most;
  const auto loss = [&](double interval) {
    FormulaInput with = input;
    with.interval_steps = interval;
    return interrupted_per_effective(with);
  };
  const double below = std::clamp(std::floor(best), 1.0, most), above = std::clamp(std::ceil(best), 1.0, most);
  return std::llround(loss(below) <= loss(above) ? below : above);
}

}  // namespace rehearse::sim
