#include "sim/calibrate/measured_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/fnv.hpp"
#include "sim/validate/outcome.hpp"

namespace rehearse::sim {
namespace {

// Two measurements of one job differ by a few percent (docs/accuracy.md).
constexpr double noise = 0.03;
constexpr std::size_t least_cases = 4;

struct Run {
  const MeasuredCase* measured_case = nullptr;
  double measured_log = 0;  // of seconds, or of a rate's inverse
};

constexpr Metric rates[] = {Metric::tokens_per_s_per_gpu, Metric::samples_per_s};

std::optional<double> time_log(const Metrics& metrics) {
  if (const auto step = metrics.find(Metric::step_s); step != metrics.end()) return std::log(step->second);
  for (const Metric metric : rates) {
    if (const auto rate = metrics.find(metric); rate != metrics.end()) return -std::log(rate->second);
  }
  return {};
}

double predicted_log(const Run& run, const Settings& settings) {
  const Outcome outcome = run_case(*run.measured_case, {.simulate = false, .sets = settings});
  const auto log = time_log(outcome.predicted);
  if (!outcome.failed.empty() || !log)
    throw config::InputError(fmt::format("case {} cannot be predicted any more: {}", config::shown(outcome.id), outcome.failed));
  return *log;
}

struct Halves {
  std::vector<Run> taken, left_out;
};

// By a hash, so that neighbours of a sweep fall on both sides.
Halves halves_of(std::vector<Run> runs) {
  std::ranges::sort(runs, {}, [](const Run& run) { return std::pair(config::fnv1a(run.measured_case->id), run.measured_case->id); });
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>((runs.size() + 1) / 2);
  return {{runs.begin(), middle}, {middle, runs.end()}};
}

double mean_error_pct(const std::vector<Run>& runs, const Settings& settings) {
  double sum = 0;
  for (const Run& run : runs) sum += std::abs(std::expm1(predicted_log(run, settings) - run.measured_log));
  return runs.empty() ? 0 : 100 * sum / static_cast<double>(runs.size());
}

void check_same(const Job& first, const Job& job, const MeasuredCase& its) {
  const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      its.job.fail(fmt::format("{} {}, where the first case has {}", what, config::shown(b), config::shown(a)),
                   "the cases of one file of one's own: one cluster, GPU and stack");
  };
  differ("cluster", first.parts->cluster.name, job.parts->cluster.name);
  differ("GPU", first.parts->gpu.name, job.parts->gpu.name);
  differ("software", first.parts->software.name, job.parts->software.name);
}

struct Readable {
  std::vector<Run> runs;
  std::optional<Job> first;
  std::vector<std::string> skipped;
};

Readable readable(const std::vector<MeasuredCase>& cases) {
  Readable out;
  for (const MeasuredCase& each : cases) {
    const auto measured = time_log(each.measured);
    if (!measured) {
      out.skipped.push_back(each.id + ": no step time");
      continue;
    }
    const Outcome outcome = run_case(each, {});
    if (!outcome.failed.empty() || !time_log(outcome.predicted)) {
      out.skipped.push_back(each.id + ": " + outcome.failed);
      continue;
    }
    Job job = read_job(each.job, each.id, each.models);
    if (out.first) check_same(*out.first, job, each);
    if (!out.first) out.first = std::move(job);
    out.runs.push_back({&each, *measured});
  }
  if (out.runs.size() < least_cases)
    throw config::InputError(
        fmt::format("{} cases with a step time that can be predicted: at least {} are needed", out.runs.size(), least_cases));
  return out;
}

}  // namespace

StepCalibration calibrate_to_steps(const std::vector<MeasuredCase>& cases, const FittedParts& which) {
  Readable found = readable(cases);
  const Halves halves = halves_of(std::move(found.runs));
  const JobParameters all = parameters_of(*found.first, which);
  std::vector<double> measured;
  for (const Run& run : halves.taken) measured.push_back(run.measured_log);
  StepCalibration out;
  out.parameters = all.parameters;
  out.skipped = std::move(found.skipped);
  out.parts = *found.first->parts;
  out.fitted = fit_parameters(all.parameters, measured, noise, [&](std::span<const double> values) {
    std::vector<double> logs;
    const Settings settings = settings_of(all, values);
    for (const Run& run : halves.taken) logs.push_back(predicted_log(run, settings));
    return logs;
  });
  out.settings = settings_of_fitted(all, out.fitted);
  const auto errors = [&](const std::vector<Run>& runs) {
    return ErrorBeforeAfter{static_cast<int>(runs.size()), mean_error_pct(runs, {}), mean_error_pct(runs, out.settings)};
  };
  out.taken = errors(halves.taken);
  out.left_out = errors(halves.left_out);
  return out;
}

}  // namespace rehearse::sim
