#include "sim/serving/load_moments.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

using workloads::Arrivals;

constexpr int most_looked_at = 10'000;  // requests whose lengths are averaged
constexpr std::size_t shares = 64;

std::vector<double> at_equal_shares(std::vector<double> values) {
  std::ranges::sort(values);
  if (values.size() <= shares) return values;
  if (values.front() == values.back()) return {values.front()};
  std::vector<double> out;
  for (std::size_t i = 0; i < shares; ++i) out.push_back(values[(2 * i + 1) * values.size() / (2 * shares)]);
  return out;
}

}  // namespace

double LoadMoments::input_at(double share) const {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(inputs.size())));
  return inputs[std::clamp<std::size_t>(rank, 1, inputs.size()) - 1];
}

LoadMoments moments_of(const workloads::LoadSpec& spec, std::uint64_t seed) {
  workloads::LoadSpec load = spec;
  load.requests = std::min(load.requests, most_looked_at);
  const std::vector<workloads::Request> requests = draw_requests(load, seed);
  const auto count = static_cast<double>(requests.size());
  LoadMoments out;
  std::vector<double> steps;
  double squares = 0, seen = 0;
  for (const workloads::Request& request : requests) {
    const double i = request.tokens.input, o = request.tokens.output;
    out.input += i;
    out.output += o;
    squares += i * i;
    seen += o * (i + o / 2);
    out.inputs.push_back(i);
    if (o > 1) steps.push_back(o - 1);
  }
  out.context = seen / out.output;
  out.input /= count;  // sums of whole numbers are exact: equal lengths have exactly their mean
  out.output /= count;
  out.input_variation = squares / count / (out.input * out.input) - 1;
  out.rate_per_s = load.arrivals.rate_per_s;
  if (load.arrivals.kind == Arrivals::trace && requests.back().arrival_s > 0) out.rate_per_s = (count - 1) / requests.back().arrival_s;
  if (load.arrivals.kind == Arrivals::gamma) out.arrival_variation = load.arrivals.variation * load.arrivals.variation;
  if (load.arrivals.kind == Arrivals::constant) out.arrival_variation = 0;
  out.pair_factor = 1 + out.input_variation;
  out.inputs_in_order = out.inputs;
  std::ranges::sort(out.inputs);
  out.step_share = static_cast<double>(steps.size()) / count;
  out.steps = at_equal_shares(std::move(steps));
  return out;
}

}  // namespace rehearse::sim
