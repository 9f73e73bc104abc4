#include <algorithm>
#include <limits>

#include "sim/federated/cuts.hpp"

namespace rehearse::federated {

double cost_of(const Option& option, double deadline_s, const PerResource& root_price) {
  const double left_s = deadline_s - option.alpha_s;
  if (left_s <= 0) return std::numeric_limits<double>::infinity();
  const double root = dot(option.root, root_price);
  return root * root / left_s;
}

Response best_response(std::span<const Option> options, double deadline_s, const PerResource& root_price) {
  Response best{.cost = std::numeric_limits<double>::infinity()};
  for (std::uint32_t c = 0; c < options.size(); ++c) {
    const double left_s = deadline_s - options[c].alpha_s;
    if (left_s <= 0) continue;
    const double root = dot(options[c].root, root_price);
    if (!(root * root < best.cost * left_s)) continue;
    best = {c, root * root / left_s, left_s, true};
  }
  return best;
}

Cuts alone_best(const Problem& problem) {
  Cuts cuts;
  for (std::size_t n = 0; n < problem.devices(); ++n) {
    const std::span<const Option> options = problem.of(n);
    const auto best = std::ranges::min_element(options, {}, &Option::alone_s);
    cuts.push_back(static_cast<std::uint32_t>(best - options.begin()));
  }
  return cuts;
}

double slowest_alone_s(const Problem& problem) {
  double slowest_s = 0;
  for (std::size_t n = 0; n < problem.devices(); ++n) {
    slowest_s = std::max(slowest_s, std::ranges::min_element(problem.of(n), {}, &Option::alone_s)->alone_s());
  }
  return slowest_s;
}

}  // namespace rehearse::federated
