// A number as a job states it: always the same, or drawn from a distribution for each device.
#pragma once

#include "config/form.hpp"
#include "config/random.hpp"

namespace rehearse::federated {

class Drawn {
 public:
  Drawn() = default;
  explicit Drawn(double value) : mean_(value) {}

  // VALUE | {uniform: [VALUE, VALUE]} | {exponential: MEAN} | {lognormal: MEAN, sigma: S} | {weibull: MEAN, shape: K}. Writes it the same
  // way.
  [[nodiscard]] static config::Form<Drawn> form(const config::Form<double>& value);

  [[nodiscard]] bool constant() const { return law_ == Law::constant; }
  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double draw(config::Random random) const;
  bool operator==(const Drawn&) const = default;

 private:
  enum class Law { constant, uniform, exponential, lognormal, weibull };
  static Drawn read(const config::Node& node, const config::Form<double>& value);
  [[nodiscard]] config::Node write(const config::Form<double>& value) const;

  Law law_ = Law::constant;
  double mean_ = 0;
  double least_ = 0, largest_ = 0;  // of uniform
  double shape_ = 0;                // lognormal: sigma; weibull: shape
};

// The generator of one field of one device: the same whatever else there is.
[[nodiscard]] config::Random field_random(std::uint64_t seed, std::uint64_t device, std::uint64_t field);

}  // namespace rehearse::federated
