#include "workloads/serving/load.hpp"

#include <algorithm>
#include <cmath>

#include "config/random.hpp"

namespace rehearse::workloads {
namespace {

using config::Random;

// Streams of random numbers of their own.
constexpr std::uint64_t arrival_stream = 1, input_stream = 2, output_stream = 3;
Random stream(std::uint64_t seed, std::uint64_t which) { return Random(config::mixed(seed * config::golden_gamma + which)); }

// Marsaglia and Tsang 2000; a shape below 1 by the boost of their section 6.
double gamma(double shape, Random& random) {
  if (shape < 1) {
    const double boost = std::pow(random.uniform(), 1 / shape);
    return gamma(shape + 1, random) * boost;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(random.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double gap(const ArrivalSpec& spec, Random& random) {
  const double mean = 1 / spec.rate_per_s;
  if (spec.kind == Arrivals::constant) return mean;
  if (spec.kind == Arrivals::poisson) return -std::log(random.uniform()) * mean;
  const double shape = 1 / (spec.variation * spec.variation);
  return gamma(shape, random) * mean / shape;
}

constexpr double normal_p90 = 1.2815515655446004;  // standard normal quantile

int length(const LengthSpec& spec, Random& random) {
  switch (spec.law) {
    case LengthLaw::uniform:
      return spec.low + static_cast<int>(random.uniform() * (spec.high - spec.low + 1.0));
    case LengthLaw::lognormal: {
      const double sigma = std::log(spec.p90 / spec.median) / normal_p90;
      const double value = spec.median * std::exp(sigma * random.normal());
      return static_cast<int>(std::clamp(std::round(value), 1.0, static_cast<double>(spec.high)));
    }
    default:
      return spec.low;
  }
}

}  // namespace

std::vector<Request> draw_requests(const LoadSpec& load, std::uint64_t seed) {
  Random times = stream(seed, arrival_stream), inputs = stream(seed, input_stream), outputs = stream(seed, output_stream);
  std::vector<Request> requests(static_cast<std::size_t>(load.requests));
  const bool drawn = load.arrivals.rate_per_s > 0;
  double now = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    const Request* row = load.trace ? &(*load.trace)[i % load.trace->size()] : nullptr;
    if (drawn) request.arrival_s = now += gap(load.arrivals, times);
    if (load.arrivals.kind == Arrivals::trace) request.arrival_s = row->arrival_s / load.arrivals.speed;
    request.tokens.input = load.input.law == LengthLaw::table ? row->tokens.input : length(load.input, inputs);
    request.tokens.output = load.output.law == LengthLaw::table ? row->tokens.output : length(load.output, outputs);
  }
  return requests;
}

}  // namespace rehearse::workloads
