// A duration as a job states it: always the same ("262 s"), or drawn from a distribution.
#pragma once

#include "config/form.hpp"
#include "sim/faults/random.hpp"

namespace rehearse::sim {

class DurationLaw {
 public:
  explicit DurationLaw(double seconds = 0) : mean_s_(seconds) {}

  // "262 s" | {exponential: 262 s} | {weibull: 262 s, shape: 0.7} | {lognormal: 262 s, sigma: 0.5} | {uniform: [100 s, 400 s]};
  // the time of exponential, weibull and lognormal is the mean.
  [[nodiscard]] static config::Form<DurationLaw> form();  // writes the mean
  [[nodiscard]] static DurationLaw read(const config::Node& node);

  [[nodiscard]] double mean_s() const { return mean_s_; }
  [[nodiscard]] double draw_s(Random& random) const;

 private:
  enum class Kind { constant, exponential, weibull, lognormal, uniform };
  Kind kind_ = Kind::constant;
  double mean_s_ = 0;
  double shape_ = 0;  // weibull: shape; lognormal: sigma; uniform: half of the width over the mean
};

}  // namespace rehearse::sim
