#include "sim/tune/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "config/fnv.hpp"
#include "config/input_error.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/report/version.hpp"
#include "sim/tune/cursor.hpp"
#include "sim/wholejob/plan.hpp"

namespace rehearse::sim {
namespace {

std::string percent_of(double share) { return fmt::format("{:.1f} %", 100 * share); }

// The largest parts of a step that are no computation, of at least a hundredth.
std::string held_back_by(const StepResult& step) {
  std::vector<std::pair<double, Phase>> parts;
  for (std::size_t i = 0; i < phase_count; ++i) {
    const auto phase = static_cast<Phase>(i);
    const double share = step.mean[phase] / step.step_s;
    if (phase != Phase::compute && share >= 0.01) parts.emplace_back(share, phase);
  }
  std::ranges::stable_sort(parts, std::greater<>{}, &std::pair<double, Phase>::first);
  if (parts.size() > 3) parts.resize(3);
  std::vector<std::string> texts;
  for (const auto& [share, phase] : parts) texts.push_back(fmt::format("{} {}", name_of(phase), percent_of(share)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// What a point's own keys say that are none of the plan's: "1024 GPUs", "precision fp8".
std::string base_text(const Space& space, std::uint64_t point) {
  std::string text;
  for (std::size_t i = 0; i < space.base_axes(); ++i) {
    const std::string& value = space.axes()[i].values[space.digit(point, i)].text;
    text += space.axes()[i].key == "gpus" ? value + " GPUs " : space.axes()[i].key + " " + value + " ";
  }
  return text;
}

TunedPlan plan_of(const Space& space, const Candidate& candidate, const workloads::Workload& workload) {
  TunedPlan plan;
  plan.candidate = candidate;
  plan.settings = space.settings(candidate.point, candidate.dp);
  plan.text = base_text(space, candidate.point) + plan_text(workload);
  return plan;
}

TunedPlan plan_of(const Space& space, const Candidate& candidate) {
  const Job base = space.base_of(candidate.point);
  return plan_of(space, candidate, Cursor(space, base, candidate.point, candidate.point + 1).workload());
}

std::vector<std::string> free_keys_of(const Space& space, const Candidate& candidate) {
  std::vector<std::string> keys;
  std::uint64_t bit = 1;
  for (const Axis& axis : space.axes()) {
    if (axis.values.size() < 2) continue;
    if ((candidate.free_axes & bit) != 0) keys.push_back(axis.key);
    bit <<= 1U;
  }
  return keys;
}

TunedPlan predicted_plan(const Space& space, const Candidate& candidate, const Job& job, const MeasuredErrors& errors) {
  TunedPlan plan = plan_of(space, candidate, job.workload);
  plan.free_keys = free_keys_of(space, candidate);
  plan.predicted = predict(job);
  plan.held_back = held_back_by(*plan.predicted);
  plan.fits = errors.bands(job, needed_share(plan.predicted->memory)).fits;
  if (job.whole.training.given())
    plan.interval_steps = plan_whole_job(job, plan.predicted->step_s, "predicted").formula_input.interval_steps;
  return plan;
}

std::string example_of(const Space& space, std::size_t which, std::uint64_t point) {
  const Job base = space.base_of(point);
  const Cursor cursor(space, base, point, point + 1);
  const workloads::Parallel& p = cursor.workload().parallel;
  const int gpus = base.system.gpus;
  if (which == Refusals::multiple) return fmt::format("{} is no multiple of tp*cp*pp = {}*{}*{}", gpus, p.tp, p.cp, p.pp);
  if (which == Refusals::product && space.follows().dp) return fmt::format("tp*cp*pp = {}*{}*{} is more than {}", p.tp, p.cp, p.pp, gpus);
  if (which == Refusals::product) return fmt::format("tp*cp*pp*dp = {}*{}*{}*{} is not {}", p.tp, p.cp, p.pp, p.dp, gpus);
  try {
    static_cast<void>(space.job_of(point, cursor.workload().parallel.dp));
  } catch (const config::InputError& error) {
    return error.message();
  }
  return "its whole job takes longer than any may";
}

std::vector<RefusedPoints> refused_points(const Space& space, const Found& found) {
  std::vector<RefusedPoints> all;
  for (std::size_t i = 0; i < found.refused.size(); ++i) {
    if (found.refused[i] == 0) continue;
    all.push_back({Refusals::key(i), found.refused[i], example_of(space, i, found.first_refused[i])});
  }
  std::ranges::stable_sort(all, std::greater<>{}, &RefusedPoints::points);
  return all;
}

// Of the best plan with a value, or with two: as far as the bounds leave it exact.
std::optional<double> known_goal(const Search& search, double goal) {
  const bool exact = !search.bounds().by_floor || !search.threshold().found;
  const bool known = std::isfinite(goal) && (exact || goal <= search.threshold().of_value());
  return known ? std::optional(goal) : std::nullopt;
}

std::vector<Sensitivity> sensitivity_of(const Space& space, const Search& search, const Found& found) {
  std::vector<Sensitivity> all;
  for (std::size_t axis = 0; axis < space.axes().size(); ++axis) {
    Sensitivity key{space.axes()[axis].key, {}};
    for (std::size_t i = 0; i < found.of_value[axis].size(); ++i) {
      const std::optional<Candidate>& best = found.of_value[axis][i];
      key.values.push_back({space.axes()[axis].values[i].text, best ? known_goal(search, best->goals[0]) : std::nullopt});
    }
    all.push_back(std::move(key));
  }
  return all;
}

// How much worse the best plan with a value is than the best of all, in the mean over the values; what is not known, or more than a quarter
// worse, counts as a quarter.
double weight(const Sensitivity& key, double best) {
  double sum = 0;
  for (const ValueOfKey& value : key.values) sum += value.goal && best != 0 ? std::min(0.25, (*value.goal - best) / std::abs(best)) : 0.25;
  return sum / static_cast<double>(key.values.size());
}

std::optional<KeyMap> map_of(const Space& space, const Search& search, const Found& found, const std::vector<Sensitivity>& sensitivity) {
  std::vector<std::size_t> axes = found.pairs.axes();
  if (axes.size() < 2 || found.best.all().empty()) return std::nullopt;
  const double best = found.best.all().front().goals[0];
  std::ranges::stable_sort(axes, std::greater<>{}, [&](std::size_t axis) { return weight(sensitivity[axis], best); });
  const auto [row, column] = std::minmax(axes[0], axes[1]);
  const auto texts = [&](std::size_t axis) {
    std::vector<std::string> all;
    for (const Axis::Value& value : space.axes()[axis].values) all.push_back(value.text);
    return all;
  };
  KeyMap map{space.axes()[row].key, space.axes()[column].key, texts(row), texts(column), {}};
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    auto& goals = map.goals.emplace_back();
    for (std::size_t j = 0; j < map.columns.size(); ++j) goals.push_back(known_goal(search, found.pairs.best(row, i, column, j)));
  }
  return map;
}

// One after another: a million plans in words are gigabytes.
void each_evaluated(const Space& space, const Found& found, const TakePlan& take) {
  std::vector<const Evaluated*> order;
  for (const Evaluated& one : found.every) order.push_back(&one);
  std::ranges::sort(order, {}, [](const Evaluated* one) { return one->candidate.point; });
  const std::uint64_t of_base = space.points_below(space.base_axes());
  std::optional<Cursor> cursor;
  std::uint64_t base = 0;
  for (const Evaluated* one : order) {
    const std::uint64_t point = one->candidate.point;
    if (!cursor || point / of_base != base) {
      base = point / of_base;
      cursor.emplace(space, space.base_of(point), point, space.size());
    }
    cursor->jump(point);
    take(plan_of(space, one->candidate, cursor->workload()), one->fit);
  }
}

}  // namespace

std::string search_hash(const Space& space, const TuneSpec& spec, const Search& search) {
  std::string text = fmt::format("{}\n{}", version(), space.text());
  for (std::uint64_t base = 0; base < space.size(); base += space.points_below(space.base_axes()))
    text += space.base_of(base).resolved.to_yaml();
  for (const Goal goal : search.goals().goals()) text += fmt::format("goal {}\n", goals().of(goal));
  const Bounds& bounds = search.bounds();
  text += fmt::format("memory {} {} price {} keep {} bounds {}{}{}\n", spec.memory, spec.fits == Fits::surely ? "surely" : "likely",
                      spec.gpu_hour.value_or(0), spec.keep, bounds.by_memory, bounds.by_row, bounds.by_floor);
  if (search.every()) text += "every plan\n";
  return config::fnv1a(text);
}

TuneReport report_of(const Space& space, const TuneSpec& spec, const Search& search, const Found& found, std::optional<Job>& job) {
  TuneReport report;
  report.hash = search_hash(space, spec, search);
  report.goals = search.goals().goals();
  report.axes = space.axes();
  report.memory_share = spec.memory;
  report.within = spec.within;
  report.exhaustive = !search.bounds().by_memory && !search.bounds().by_row && !search.bounds().by_floor;
  report.points = space.size();
  report.decided = found.points;
  report.evaluated = found.evaluated;
  report.unfit = found.unfit;
  report.may_run_out = found.may_run_out;
  report.cut = found.cut;
  report.refused = refused_points(space, found);
  report.sensitivity = sensitivity_of(space, search, found);
  report.map = map_of(space, search, found, report.sensitivity);
  const MeasuredErrors errors;
  for (const Candidate& candidate : found.best.all()) {
    const Job own = tuned(space.job_of(candidate.point, candidate.dp));
    report.best.push_back(predicted_plan(space, candidate, own, errors));
    if (job) continue;
    job = own;
    report.best_yaml = own.resolved.to_yaml();
  }
  if (report.goals.size() > 1) {
    for (const Candidate& candidate : found.front.all()) report.front.push_back(plan_of(space, candidate));
  }
  if (found.keeps_every) report.each_evaluated = [&space, &found](const TakePlan& take) { each_evaluated(space, found, take); };
  if (found.best.all().empty() && found.nearest) {
    report.nearest = plan_of(space, *found.nearest);
    job = space.job_of(found.nearest->point, found.nearest->dp);
  }
  if (job && search.errors() != nullptr) report.most_need = errors.most_need(*job);
  return report;
}

}  // namespace rehearse::sim
