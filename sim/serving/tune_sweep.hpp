// `tune` of a job over values of one of its keys: the optimum of each (docs/serving.md, "Tuning").
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/node.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::sim {

struct TunedPoint {
  std::string value;
  std::shared_ptr<const ServingTuning> tuning;
};
struct TuneSweep {
  std::string key;
  std::vector<TunedPoint> points;
};

// KEY=VALUE,VALUE,...: commas in brackets belong to the value. The job is read anew with each; what is wrong with one is refused.
[[nodiscard]] TuneSweep tune_over(const config::Node& document, const std::string& name, const std::string& sweep,
                                  const std::function<void(double)>& progress);

// Of a deployment what the first goal is about, by formula; small is good.
[[nodiscard]] double goal_value(const ServingTuning& tuning, const TunedDeployment& one);

struct RunnerUp {
  const TunedDeployment* deployment = nullptr;
  double worse_by = 0;    // than the chosen one, by the first goal
  bool at_least = false;  // it is known alone that it carries less than another
};
// The best of those that are not chosen and that no simulation refuted, by the first goal: cost and GPUs, times and rates as the chosen one
// has them, simulated or by formula. Nothing: there is none.
[[nodiscard]] std::optional<RunnerUp> runner_up(const ServingTuning& tuning);

}  // namespace rehearse::sim
