#include "sim/federated/drawn.hpp"

#include <cmath>

namespace rehearse::federated {
namespace {

using config::Node;
using config::Shape;

constexpr double least_shape = 0.1, largest_shape = 10;  // beyond, one draw decides everything or nothing does

Shape laws(const Shape& value) {
  const Shape number = config::number(least_shape, largest_shape).shape;
  return {.kind = Shape::Kind::mapping,
          .keys = {{"uniform", {.kind = Shape::Kind::list, .parts = {value}}, false, "", "The least and the largest."},
                   {"exponential", value, false, "", "Mean of an exponential law."},
                   {"lognormal", value, false, "", "Mean of a log-normal law."},
                   {"sigma", number, false, "", "Of lognormal: deviation of the logarithm."},
                   {"weibull", value, false, "", "Mean of a Weibull law."},
                   {"shape", number, false, "", "Of weibull."}}};
}

}  // namespace

config::Form<Drawn> Drawn::form(const config::Form<double>& value) {
  return {config::either({value.shape, laws(value.shape)}), [value](const Node& node) { return read(node, value); },
          [value](const Drawn& drawn) { return drawn.write(value); }};
}

Drawn Drawn::read(const Node& node, const config::Form<double>& value) {
  if (!node.is_map()) return Drawn(value.read(node));
  node.allow_keys(names_of(laws(value.shape).keys));
  const auto law = [&](Law kind, std::string_view name, std::string_view shape) {
    std::vector<std::string> keys{std::string(name)};
    if (!shape.empty()) keys.emplace_back(shape);
    node.allow_keys(keys);
    Drawn out(value.read(node.at(name)));
    out.law_ = kind;
    if (!shape.empty()) out.shape_ = node.at(shape).as_number(least_shape, largest_shape);
    return out;
  };
  if (node.find("exponential")) return law(Law::exponential, "exponential", "");
  if (node.find("lognormal")) return law(Law::lognormal, "lognormal", "sigma");
  if (node.find("weibull")) return law(Law::weibull, "weibull", "shape");
  const Node uniform = node.at("uniform");
  const std::vector<Node> ends = uniform.items();
  if (ends.size() != 2) uniform.fail("uniform takes two values, the least and the largest");
  const double low = value.read(ends[0]), high = value.read(ends[1]);
  if (low > high) ends[1].fail("the largest value is below the least");
  Drawn out((low + high) / 2);
  out.law_ = Law::uniform;
  out.least_ = low;
  out.largest_ = high;
  return out;
}

Node Drawn::write(const config::Form<double>& value) const {
  if (constant()) return value.write(mean_);
  Node out;
  if (law_ == Law::uniform) {
    out.set_child("uniform", Node::list({value.write(least_), value.write(largest_)}));
    return out;
  }
  const Node mean = value.write(mean_), shape = config::number(least_shape, largest_shape).write(shape_);
  out.set_child(law_ == Law::exponential ? "exponential" : law_ == Law::lognormal ? "lognormal" : "weibull", mean);
  if (law_ == Law::lognormal) out.set_child("sigma", shape);
  if (law_ == Law::weibull) out.set_child("shape", shape);
  return out;
}

double Drawn::draw(config::Random random) const {
  switch (law_) {
    case Law::uniform:
      return mean_ + (largest_ - least_) / 2 * (2 * random.uniform() - 1);
    case Law::exponential:
      return -mean_ * std::log(random.uniform());
    case Law::lognormal:  // mean of exp(m + sigma Z) is exp(m + sigma^2 / 2)
      return mean_ * std::exp(shape_ * random.normal() - shape_ * shape_ / 2);
    case Law::weibull:
      return mean_ / std::tgamma(1 + 1 / shape_) * std::pow(-std::log(random.uniform()), 1 / shape_);
    case Law::constant:
      break;
  }
  return mean_;
}

config::Random field_random(std::uint64_t seed, std::uint64_t device, std::uint64_t field) {
  using config::golden_gamma;
  using config::mixed;
  return config::Random(mixed(mixed(mixed(seed + golden_gamma) + device) + field * golden_gamma));
}

}  // namespace rehearse::federated
