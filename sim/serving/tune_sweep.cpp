#include "sim/serving/tune_sweep.hpp"

#include <fmt/format.h>

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
  const double rate = one.rate_per_s > 0 ? one.rate_per_s : tuning.rate_per_s;
  switch (tuning.goals.front()) {
    case ServingGoal::cost:
      return one.cost_per_s;
    case ServingGoal::gpus:
      return one.gpus;
    case ServingGoal::ttft:
      return one.ttft_s;
    case ServingGoal::tpot:
      return one.tpot_s;
    case ServingGoal::goodput:
      return 1 / rate;
    case ServingGoal::goodput_per_cost:
      return one.cost_per_s / rate;
  }
  return 0;
}

const TunedDeployment* runner_up(const ServingTuning& tuning) {
  const TunedDeployment* out = nullptr;
  for (std::size_t i = 0; i < tuning.best.size(); ++i) {
    if (tuning.chosen == i) continue;
    if (out == nullptr || goal_value(tuning, tuning.best[i]) < goal_value(tuning, *out)) out = &tuning.best[i];
  }
  return out;
}

}  // namespace rehearse::sim
