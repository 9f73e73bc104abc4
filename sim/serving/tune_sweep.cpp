#include "sim/serving/tune_sweep.hpp"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

namespace rehearse::sim {
namespace {

struct SweptKey {
  std::string key;
  std::vector<std::string> values;
};

SweptKey swept_key(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw config::InputError(fmt::format("--sweep takes key=value,value,..., not {}", config::shown(text)),
                             "for example --sweep 'serving.load.arrivals.poisson=2 /s,4 /s,8 /s'");
  SweptKey out{text.substr(0, equals), {""}};
  int depth = 0;
  for (const char c : text.substr(equals + 1)) {
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0) {
      out.values.emplace_back();
    } else {
      out.values.back() += c;
    }
  }
  return out;
}

double value_of(ServingGoal goal, const TunedDeployment& one, double ttft_s, double tpot_s, double rate_per_s) {
  switch (goal) {
    case ServingGoal::cost:
      return one.cost_per_s;
    case ServingGoal::gpus:
      return one.gpus;
    case ServingGoal::ttft:
      return ttft_s;
    case ServingGoal::tpot:
      return tpot_s;
    case ServingGoal::goodput:
      return 1 / rate_per_s;
    case ServingGoal::goodput_per_cost:
      return one.cost_per_s / rate_per_s;
  }
  return 0;
}

}  // namespace

TuneSweep tune_over(const config::Node& document, const std::string& name, const std::string& sweep,
                    const std::function<void(double)>& progress) {
  const SweptKey swept = swept_key(sweep);
  TuneSweep out{swept.key, {}};
  const auto all = static_cast<double>(swept.values.size());
  for (const std::string& value : swept.values) {
    config::Node with = document;
    with.set(swept.key, value);
    const ServingJob job = read_serving_job(with, name);
    check_tunable(job, with.at("serving"));
    const auto done = static_cast<double>(out.points.size());
    out.points.push_back(
        {value, std::make_shared<const ServingTuning>(tune_serving(job, [&](double share) { progress((done + share) / all); }))});
  }
  return out;
}

double goal_value(const ServingTuning& tuning, const TunedDeployment& one) {
  return value_of(tuning.goals.front(), one, one.ttft_s, one.tpot_s, tuning.formula_per_s(one));
}

std::optional<RunnerUp> runner_up(const ServingTuning& tuning) {
  if (!tuning.chosen) return std::nullopt;
  const ServingGoal goal = tuning.goals.front();
  const TunedDeployment& chosen = tuning.best[*tuning.chosen];
  const auto value = [&](const TunedDeployment& one) {
    if (!one.simulated) return goal_value(tuning, one);
    const double rate = one.below_per_s > 0 ? one.below_per_s : one.simulated->goodput_per_s;
    return value_of(goal, one, one.simulated->promised_ttft_s, one.simulated->promised_tpot_s, rate);
  };
  // Cost and GPUs are the same by formula and simulation.
  const bool counted = goal == ServingGoal::cost || goal == ServingGoal::gpus;
  std::optional<RunnerUp> out;
  for (const TunedDeployment& one : tuning.best) {
    const bool rates = is_of_rates(goal), refuted = one.simulated && (rates ? one.simulated->goodput_per_s == 0 : !one.simulated->kept);
    if (&one == &chosen || refuted || (!counted && one.simulated.has_value() != chosen.simulated.has_value())) continue;
    const RunnerUp next{&one, value(one) / value(chosen) - 1, one.below_per_s > 0};
    if (std::isfinite(next.worse_by) && (!out || std::tuple(next.at_least, next.worse_by) < std::tuple(out->at_least, out->worse_by)))
      out = next;
  }
  return out;
}

}  // namespace rehearse::sim
