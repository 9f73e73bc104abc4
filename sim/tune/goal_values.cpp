#include "sim/tune/goal_values.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "config/quantity.hpp"
#include "sim/wholejob/plan.hpp"

namespace rehearse::sim {
namespace {

constexpr double seconds_per_hour = 3600;
constexpr double infinity = std::numeric_limits<double>::infinity();

bool of_whole_job(Goal goal) { return goal == Goal::time || goal == Goal::ettr; }

double tokens_of(const workloads::Batch& batch) { return static_cast<double>(batch.global) * batch.sequence; }

// As finish_for() has it.
double mfu_of(const Job& job, double step_s) {
  const workloads::Workload& w = job.workload;
  const double flops = w.batch.global * workloads::step_flops_per_sequence(w, false);
  return flops / (job.system.gpus * step_s) / job.system.gpu.peak_flops_per_s.at(w.precision.compute);
}

struct TrainedWhole {
  double total_s = 0, steps = 0, ettr = 0;
};

TrainedWhole whole_job(const Job& job, double step_s) {
  const FormulaInput input = plan_whole_job(job, step_s, "predicted").formula_input;
  const FormulaResult result = formula(input);
  return {result.total_s(), input.steps, result.ettr};
}

// T_eff + T_int is the least over K of sums that grow with T_step, so it grows too. Not where K is a time or is worked out without what the
// backups take: then K is not the best one.
bool time_grows(const Job& job) {
  const CheckpointSpec& checkpoint = job.whole.checkpoint;
  return checkpoint.interval.steps > 0 || (checkpoint.interval.time_s == 0 && !checkpoint.backup);
}

// Not ETTR: of a longer step, checkpoints take a smaller part. And what is limited by time does not take longer.
bool grows(Goal goal, const Job& job, bool whole) {
  if (goal == Goal::ettr) return false;
  const bool by_whole_job = goal == Goal::time || (goal == Goal::cost && whole);
  return !by_whole_job || (time_grows(job) && !(job.whole.training.time_s > 0));
}

}  // namespace

GoalValues::GoalValues(const TuneSpec& spec, const Job& open)
    : goals_(spec.goals), whole_(open.whole.training.given()), by_time_(open.whole.training.time_s > 0) {
  if (goals_.empty()) goals_ = {whole_ && !by_time_ ? Goal::time : Goal::step};
  for (std::size_t i = 0; i < goals_.size(); ++i) {
    const Goal goal = goals_[i];
    const config::Node where = spec.goal && spec.goal.is_sequence() ? spec.goal.items()[i] : spec.goal;
    if (of_whole_job(goal) && !whole_)
      where.fail(fmt::format("goal {} needs the length of the training", sim::goals().of(goal)), "add training: {tokens: 15e12}");
    if (goal == Goal::time && by_time_)
      where.fail("goal time of a training that is limited by time", "give training.steps or training.tokens");
    if (goal == Goal::cost && !spec.gpu_hour) where.fail("goal cost needs a price", "add price: {gpu_hour: 2.50} to tune, or --price 2.50");
  }
  gpu_hour_ = spec.gpu_hour.value_or(0);
}

bool GoalValues::needs_whole_job() const {
  for (const Goal goal : goals_) {
    if (of_whole_job(goal) || (goal == Goal::cost && whole_)) return true;
  }
  return false;
}

double GoalValues::cost(const Job& job, double seconds) const { return job.system.gpus * seconds / seconds_per_hour * gpu_hour_; }

double GoalValues::of_one(Goal goal, const Job& job, double step_s, double needed_bytes) const {
  const double tokens_per_s = tokens_of(job.workload.batch) / step_s;
  switch (goal) {
    case Goal::tokens_per_s:
      return -tokens_per_s;
    case Goal::tokens_per_s_per_gpu:
      return -(tokens_per_s / job.system.gpus);
    case Goal::mfu:
      return -mfu_of(job, step_s);
    case Goal::cost:
      return cost(job, step_s) / tokens_of(job.workload.batch);
    case Goal::memory:
      return needed_bytes;
    default:
      return step_s;
  }
}

GoalArray GoalValues::of(const Job& job, double step_s, double needed_bytes) const {
  GoalArray values{};
  const TrainedWhole whole = needs_whole_job() ? whole_job(job, step_s) : TrainedWhole{};
  for (std::size_t i = 0; i < goals_.size(); ++i) {
    if (goals_[i] == Goal::time) {
      values[i] = whole.total_s;
    } else if (goals_[i] == Goal::ettr) {
      values[i] = -whole.ettr;
    } else if (goals_[i] == Goal::cost && whole_) {
      // What is limited by time costs the same with any plan that does not fail: what a trained token costs tells plans apart.
      values[i] = cost(job, whole.total_s) / (by_time_ ? whole.steps * tokens_of(job.workload.batch) : 1);
    } else {
      values[i] = of_one(goals_[i], job, step_s, needed_bytes);
    }
  }
  return values;
}

GoalArray GoalValues::at_least(const Job& job, double step_s, double needed_bytes) const {
  GoalArray values{};
  values.fill(-infinity);
  for (std::size_t i = 0; i < goals_.size(); ++i) {  // no more than all of the time is training; a part in 10^12 for the order of products
    if (goals_[i] == Goal::cost && by_time_) values[i] = of_one(Goal::cost, job, step_s, 0) * (1 - 1e-12);
  }
  const auto bounded = [&](Goal goal) { return goal == Goal::memory ? needed_bytes > 0 : step_s > 0 && grows(goal, job, whole_); };
  bool any = false;
  for (const Goal goal : goals_) any = any || bounded(goal);
  if (!any) return values;
  GoalArray all{};
  try {
    all = of(job, std::max(step_s, 1e-9), needed_bytes);
  } catch (const config::InputError&) {
    return values;  // the point is refused when it is evaluated
  }
  for (std::size_t i = 0; i < goals_.size(); ++i) {
    if (bounded(goals_[i])) values[i] = all[i];
  }
  return values;
}

double GoalValues::shown(Goal goal, double value) {
  const bool large = goal == Goal::tokens_per_s || goal == Goal::tokens_per_s_per_gpu || goal == Goal::mfu || goal == Goal::ettr;
  return large ? -value : value;
}

std::string GoalValues::text(Goal goal, double value) {
  using config::Dimension;
  const double number = shown(goal, value);
  switch (goal) {
    case Goal::step:
      return number < 100 ? fmt::format("{:.4g} s", number) : fmt::format("{:.1f} s", number);
    case Goal::tokens_per_s:
      return fmt::format("{:.4g}", number);
    case Goal::tokens_per_s_per_gpu:
      return fmt::format("{:.1f}", number);
    case Goal::mfu:
    case Goal::ettr:
      return fmt::format("{:.2f} %", 100 * number);
    case Goal::time:
      return fmt::format("{:.3f} days", number / 86400);
    case Goal::cost:
      return number < 1 ? fmt::format("{:.4g} per million tokens", 1e6 * number) : fmt::format("{:.0f}", number);
    case Goal::memory:
      return config::human_quantity(number, Dimension::bytes);
  }
  return "";
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  constexpr double parts = 1099511627776.0;  // 2^40, about 10^12
  return std::ldexp(std::nearbyint(mantissa * parts) / parts, exponent);
}

}  // namespace rehearse::sim
