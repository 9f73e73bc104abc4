#include "sim/wholejob/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/job/recovery_policy.hpp"
#include "sim/job/refusal.hpp"
#include "sim/wholejob/start_up.hpp"

namespace rehearse::sim {
namespace {

double recovery_s(const FailureRate& rate, const RecoveryPolicy& policy, const RecoverySpec& spec) {
  const Response response = policy.respond({rate.level, rate.level == FaultLevel::pod ? 1 : 0, true}, spec);
  return response.own_time_of_fault && rate.recovery_s ? *rate.recovery_s : response.time->mean_s();
}

// Rate of all failures and their mean recovery time (41), with detection and loading.
void add_failures(const WholeJobPlan& plan, double horizon_s, FormulaInput& input) {
  const WholeJob& whole = plan.job->whole;
  const RecoveryPolicy& policy = RecoveryPolicyRegistry::get(whole.recovery.policy);
  double sum_s = 0;
  for (const FailureRate& rate : whole.faults.rates(horizon_s)) {
    input.failures_per_s += rate.per_s;
    sum_s += rate.per_s * recovery_s(rate, policy, whole.recovery);
  }
  if (input.failures_per_s <= 0) return;
  input.repair_s = sum_s / input.failures_per_s + whole.recovery.detection.mean_s() + plan.checkpoint.load_s + whole.data_s;
}

std::int64_t settle_interval(const CheckpointInterval& interval, const FormulaInput& input) {
  if (interval.steps > 0) return interval.steps;
  if (interval.time_s > 0) return std::max<std::int64_t>(1, std::llround(interval.time_s / input.step_s));
  return optimum_interval_steps(input);
}

// Steps to be trained; INT64_MAX when only the time is limited.
std::int64_t settle_steps(const Job& job, double tokens_per_step) {
  const TrainingLength& length = job.whole.training;
  if (length.steps > 0) return length.steps;
  return length.tokens > 0 ? std::llround(std::ceil(length.tokens / tokens_per_step)) : INT64_MAX;
}

double first_start_s(const Job& job) { return job.whole.init_s.value_or(start_up_s(job.system.gpus)); }

FormulaInput formula_input(const WholeJobPlan& plan) {
  const WholeJob& whole = plan.job->whole;
  const double limit_s = whole.training.time_s;
  const double training_s = limit_s > 0 ? limit_s : static_cast<double>(plan.training.steps) * plan.step_s;
  FormulaInput input{.step_s = plan.step_s,
                     .save_s = plan.checkpoint.blocking_s,
                     .init_s = limit_s > 0 ? std::min(first_start_s(*plan.job), limit_s) : first_start_s(*plan.job),
                     .limited_by_time = limit_s > 0};
  add_failures(plan, training_s, input);
  input.steps = training_s / plan.step_s;
  input.interval_steps = static_cast<double>(settle_interval(whole.checkpoint.interval, input));
  if (const auto& backup = whole.checkpoint.backup) {  // per checkpoint, on average
    input.save_s += plan.checkpoint.backup_blocking_s * input.interval_steps / static_cast<double>(backup->interval_steps);
  }
  if (limit_s > 0) input.steps = steps_in(limit_s, input);
  return input;
}

void check_length(const WholeJobPlan& plan) {
  const Job& job = *plan.job;
  const double seconds = static_cast<double>(plan.training.steps) * plan.step_s;
  if (plan.limit != never || seconds < longest_job_s / 4) return;
  refuse(job.given, "training", fmt::format("{} steps of {:.3g} s take longer than 25 years", plan.training.steps, plan.step_s));
}

// Twenty times what the job takes when nothing fails, and a day: who gets there loses 95 % of the time, and more of it later.
Ns hopeless(const WholeJobPlan& plan) {
  if (plan.limit != never) return never;
  constexpr double times = 20;
  const FormulaInput& input = plan.formula_input;
  const double undisturbed_s = input.init_s + input.steps * input.step_s + input.saves() * input.save_s;
  return to_ns(std::min(longest_job_s, times * undisturbed_s + seconds_per_day));
}

void check_backup(const WholeJobPlan& plan) {
  const auto& backup = plan.job->whole.checkpoint.backup;
  if (!backup || backup->interval_steps % plan.training.interval == 0) return;
  refuse(
      plan.job->given, "checkpoint.backup.interval",
      fmt::format("a backup every {} steps is not a multiple of the checkpoints every {}", backup->interval_steps, plan.training.interval));
}

void fill_training(const WholeJobPlan& plan, TrainingPlan& training) {
  const CheckpointSpec& spec = plan.job->whole.checkpoint;
  training.nominal_step = std::max<Ns>(1, to_ns(plan.step_s));
  training.interval = static_cast<std::int64_t>(plan.formula_input.interval_steps);
  training.save = {to_ns(plan.checkpoint.blocking_s), to_ns(plan.checkpoint.background_s)};
  training.writing_slowdown = spec.slowdown;
  if (!spec.backup) return;
  training.backup_every = spec.backup->interval_steps;
  training.backup_save = {to_ns(plan.checkpoint.backup_blocking_s), to_ns(plan.checkpoint.backup_background_s)};
}

}  // namespace

WholeJobPlan plan_whole_job(const Job& job, double step_s, const std::string& step_method) {
  const WholeJob& whole = job.whole;
  if (!whole.training.given()) {
    throw config::InputError("the job does not say how long it trains",
                             "add training: {steps: 100000}, {tokens: 15e12} or {time: 54 days}, or --set training.steps=100000");
  }
  WholeJobPlan plan;
  plan.job = &job;
  plan.step_s = step_s;
  plan.step_method = step_method;
  plan.tokens_per_step = static_cast<double>(job.workload.batch.global) * job.workload.batch.sequence;
  plan.checkpoint = checkpoint_times(job);
  plan.training.steps = settle_steps(job, plan.tokens_per_step);
  if (whole.training.time_s > 0) plan.limit = to_ns(whole.training.time_s);
  check_length(plan);
  plan.formula_input = formula_input(plan);
  fill_training(plan, plan.training);
  check_backup(plan);
  plan.give_up = hopeless(plan);
  plan.init = to_ns(first_start_s(job));
  plan.load = to_ns(plan.checkpoint.load_s);
  plan.backup_load = to_ns(plan.checkpoint.backup_load_s);
  plan.data = to_ns(whole.data_s);
  return plan;
}

}  // namespace rehearse::sim
