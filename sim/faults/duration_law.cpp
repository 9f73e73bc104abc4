#include "sim/faults/duration_law.hpp"

#include <algorithm>

#include "sim/faults/nanoseconds.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using config::Shape;

constexpr double least_shape = 0.1, largest_shape = 10;  // beyond, one draw decides everything or nothing does

double time_of(const Node& node) {
  const double seconds = node.as_quantity(config::Dimension::time);
  if (seconds > longest_job_s) node.fail("longer than 100 years");
  return seconds;
}

struct Numbers {
  double mean_s = 0, shape = 0;
};

// The time at `name` is the mean; `shape`: the key of the second parameter, if there is one.
Numbers mean_and_shape(const Node& node, std::string_view name, std::string_view shape = {}) {
  std::vector<std::string> keys{std::string(name)};
  if (!shape.empty()) keys.emplace_back(shape);
  node.allow_keys(keys);
  return {time_of(node.at(name)), shape.empty() ? 0 : node.at(shape).as_number(least_shape, largest_shape)};
}

Numbers between(const Node& node) {
  node.allow_keys({"uniform"});
  const Node uniform = node.at("uniform");
  const std::vector<Node> ends = uniform.items();
  if (ends.size() != 2) uniform.fail("uniform takes two times, the shortest and the longest");
  const double low = time_of(ends[0]), high = time_of(ends[1]);
  if (low > high) ends[1].fail("the longest time is shorter than the shortest");
  return {(low + high) / 2, high > 0 ? (high - low) / (high + low) : 0};
}

const Shape& law_shape() {
  const Shape time = config::quantity(config::Dimension::time).shape, number = config::number(least_shape, largest_shape).shape;
  static const Shape shape{.kind = Shape::Kind::mapping,
                           .keys = {{"exponential", time, false, "", "Mean of an exponential law."},
                                    {"weibull", time, false, "", "Mean of a Weibull law."},
                                    {"shape", number, false, "", "Of weibull."},
                                    {"lognormal", time, false, "", "Mean of a log-normal law."},
                                    {"sigma", number, false, "", "Of lognormal: deviation of the logarithm."},
                                    {"uniform", {.kind = Shape::Kind::list, .parts = {time}}, false, "", "The shortest and the longest."}}};
  return shape;
}

}  // namespace

config::Form<DurationLaw> DurationLaw::form() {
  const config::Form<double> time = config::quantity(config::Dimension::time);
  return {config::either({time.shape, law_shape()}), read, [time](const DurationLaw& law) { return time.write(law.mean_s()); }};
}

DurationLaw DurationLaw::read(const Node& node) {
  if (!node.is_map()) return DurationLaw(time_of(node));
  node.allow_keys(names_of(law_shape().keys));
  const auto law = [](Kind kind, const Numbers& numbers) {
    DurationLaw out(numbers.mean_s);
    out.kind_ = kind;
    out.shape_ = numbers.shape;
    return out;
  };
  if (node.find("exponential")) return law(Kind::exponential, mean_and_shape(node, "exponential"));
  if (node.find("weibull")) return law(Kind::weibull, mean_and_shape(node, "weibull", "shape"));
  if (node.find("lognormal")) return law(Kind::lognormal, mean_and_shape(node, "lognormal", "sigma"));
  return law(Kind::uniform, between(node));
}

double DurationLaw::draw_s(Random& random) const {
  const auto drawn = [&] {
    switch (kind_) {
      case Kind::exponential:
        return random.exponential(mean_s_);
      case Kind::weibull:
        return random.weibull(mean_s_ / std::tgamma(1 + 1 / shape_), shape_);
      case Kind::lognormal:  // mean of exp(m + sigma Z) is exp(m + sigma^2 / 2)
        return mean_s_ * std::exp(shape_ * random.normal() - shape_ * shape_ / 2);
      case Kind::uniform:
        return mean_s_ * (1 + shape_ * (2 * random.uniform() - 1));
      case Kind::constant:
        break;
    }
    return mean_s_;
  };
  return std::min(drawn(), longest_job_s);
}

}  // namespace rehearse::sim
