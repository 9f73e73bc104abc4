#include "sim/serving/load_moments.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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

namespace {

// Of the lengths alone.
LoadMoments moments_of_lengths(std::shared_ptr<const std::vector<workloads::Lengths>> requests) {
  const auto count = static_cast<double>(requests->size());
  LoadMoments out;
  std::vector<double> steps;
  double squares = 0, seen = 0;
  for (const workloads::Lengths& tokens : *requests) {
    const double i = tokens.input, o = tokens.output;
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
  out.pair_factor = 1 + out.input_variation;
  std::ranges::sort(out.inputs);
  out.step_share = static_cast<double>(steps.size()) / count;
  out.steps = at_equal_shares(std::move(steps));
  out.requests = std::move(requests);
  return out;
}

}  // namespace

LoadMoments moments_of(const workloads::LoadSpec& spec, std::uint64_t seed) {
  workloads::LoadSpec load = spec;
  load.requests = std::min(load.requests, most_looked_at);
  const std::vector<workloads::Request> drawn = draw_requests(load, seed);
  auto lengths = std::make_shared<std::vector<workloads::Lengths>>();
  for (const workloads::Request& request : drawn) lengths->push_back(request.tokens);
  LoadMoments out = moments_of_lengths(std::move(lengths));
  out.rate_per_s = load.arrivals.rate_per_s;
  if (load.arrivals.kind == Arrivals::trace && drawn.back().arrival_s > 0)
    out.rate_per_s = static_cast<double>(drawn.size() - 1) / drawn.back().arrival_s;
  if (load.arrivals.kind == Arrivals::gamma) out.arrival_variation = load.arrivals.variation * load.arrivals.variation;
  if (load.arrivals.kind == Arrivals::constant) out.arrival_variation = 0;
  return out;
}

double share_within(const LoadMoments& load, const LengthRange& range) {
  const auto number = std::ranges::count_if(load.inputs, [&](double tokens) { return range.has(tokens); });
  return static_cast<double>(number) / static_cast<double>(load.inputs.size());
}

void put_found(LoadMoments& load, std::vector<double> found, std::size_t counted_from) {
  if (counted_from >= found.size()) counted_from = 0;
  double computed = 0, squares = 0, pairs = 0, found_in_all = 0;
  for (std::size_t i = counted_from; i < found.size(); ++i) {
    const double tokens = (*load.requests)[i].input, left = tokens - found[i];
    computed += left;
    squares += left * left;
    pairs += tokens * tokens - found[i] * found[i];
    found_in_all += found[i];
  }
  const auto count = static_cast<double>(found.size() - counted_from);
  load.found = found_in_all / count;
  load.input_variation = squares * count / (computed * computed) - 1;
  load.pair_factor = pairs / count / (load.input * load.input - load.found * load.found);
  load.found_in_order = std::move(found);
  load.counted_from = counted_from;
}

LoadMoments load_within(const LoadMoments& load, const LengthRange& range) {
  auto lengths = std::make_shared<std::vector<workloads::Lengths>>();
  std::vector<double> found;
  std::size_t before = 0;  // those that count
  for (std::size_t i = 0; i < load.requests->size(); ++i) {
    const workloads::Lengths& one = (*load.requests)[i];
    if (!range.has(one.input)) continue;
    lengths->push_back(one);
    if (!load.found_in_order.empty()) found.push_back(load.found_in_order[i]);
    if (i < load.counted_from) ++before;
  }
  const double share = static_cast<double>(lengths->size()) / static_cast<double>(load.requests->size());
  LoadMoments out = moments_of_lengths(std::move(lengths));
  if (!found.empty()) put_found(out, std::move(found), before);
  out.rate_per_s = load.rate_per_s * share;
  out.arrival_variation = 1 + share * (load.arrival_variation - 1);  // of gaps of which so many, drawn geometrically, follow one another
  out.percentile = load.percentile;
  out.taken_out = load.taken_out || share < 1;
  return out;
}

}  // namespace rehearse::sim
