#include "sim/wholejob/formula.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

// T_int without T_init per second of training: of failures, of checkpoints.
double failing_per_effective(const FormulaInput& input) {
  return input.failures_per_s * (input.repair_s + input.interval_steps / 2 * input.step_s);
}
double saving_per_effective(const FormulaInput& input) { return input.save_s / (input.interval_steps * input.step_s); }

}  // namespace

double steps_in(double seconds, const FormulaInput& input) {
  const double left_s = std::max(0.0, seconds - input.init_s);
  const double unsaved = left_s / (1 + failing_per_effective(input)) / input.step_s;
  if (unsaved < input.interval_steps) return unsaved;
  return left_s / (1 + (failing_per_effective(input) + saving_per_effective(input))) / input.step_s;
}

FormulaResult formula(const FormulaInput& input) {
  FormulaResult result;
  result.effective_s = input.steps * input.step_s;
  result.failures = input.failures_per_s * result.effective_s;
  const double saving = input.saves() > 0 ? saving_per_effective(input) : 0;
  result.interrupted_s = input.init_s + result.effective_s * (failing_per_effective(input) + saving);
  result.ettr = result.effective_s / result.total_s();
  if (input.failures_per_s > 0) result.mttf_s = 1 / input.failures_per_s;
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
    return failing_per_effective(with) + saving_per_effective(with);
  };
  const double below = std::clamp(std::floor(best), 1.0, most), above = std::clamp(std::ceil(best), 1.0, most);
  return std::llround(loss(below) <= loss(above) ? below : above);
}

}  // namespace rehearse::sim
