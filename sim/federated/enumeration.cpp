#include "sim/federated/enumeration.hpp"

#include <algorithm>

namespace rehearse::federated {
namespace {

struct Candidate {
  std::uint32_t option = 0;
  double extra = 0;  // over the device's cheapest
};

struct Open {
  std::size_t device = 0;
  std::vector<Candidate> candidates;  // cheapest first
};

class Walk {
 public:
  explicit Walk(const Enumeration& of) : of_(of), slack_(of.budget) {
    cuts_.resize(of.cost.size());
    for (const std::vector<double>& costs : of.cost) slack_ -= *std::ranges::min_element(costs);
    for (std::size_t n = 0; n < of.cost.size(); ++n) open(n);
    // Those whose second choice costs most are decided first: the walk is narrow where it begins.
    std::ranges::stable_sort(open_, std::ranges::greater{}, [](const Open& open) { return open.candidates[1].extra; });
  }

  Enumerated run() {
    const bool found = slack_ >= 0 && descend(0, 0);
    return {!found && nodes_ <= of_.nodes, nodes_};
  }

 private:
  void open(std::size_t device) {
    const std::vector<double>& costs = of_.cost[device];
    const double least = *std::ranges::min_element(costs);
    Open open{.device = device, .candidates = {}};
    for (std::uint32_t c = 0; c < costs.size(); ++c) {
      if (costs[c] - least <= slack_) open.candidates.push_back({c, costs[c] - least});
    }
    if (open.candidates.empty()) return;
    std::ranges::stable_sort(open.candidates, {}, &Candidate::extra);
    cuts_[device] = open.candidates.front().option;
    if (open.candidates.size() > 1) open_.push_back(std::move(open));
  }

  bool descend(std::size_t level, double extra) {
    if (++nodes_ > of_.nodes) return false;
    if (level == open_.size()) return of_.better(cuts_);
    for (const Candidate& candidate : open_[level].candidates) {
      if (extra + candidate.extra > slack_) break;
      cuts_[open_[level].device] = candidate.option;
      if (descend(level + 1, extra + candidate.extra)) return true;
      if (nodes_ > of_.nodes) return false;
    }
    return false;
  }

  const Enumeration& of_;
  double slack_;
  Cuts cuts_;
  std::vector<Open> open_;
  std::uint64_t nodes_ = 0;
};

}  // namespace

Enumerated enumerate(const Enumeration& of) { return Walk(of).run(); }

}  // namespace rehearse::federated
