// Which cut each device takes so that the round is as short as it can be: best responses to prices, a lower bound over all cuts, and what
// is left between them enumerated (docs/federated.md, equations 15 and 16).
#pragma once

#include "sim/federated/problem.hpp"
#include "sim/federated/shares.hpp"

namespace rehearse::federated {

struct CutSearch {
  double gap = 1e-6;              // relative; the search ends when the bound is as near as that
  std::uint64_t nodes = 100'000;  // of the enumeration of what the bound leaves open; 0: none
};

struct ChosenCuts {
  Cuts cuts;
  double round_s = 0;
  double bound_s = 0;       // no choice of cuts is faster
  bool proven = false;      // optimal: nothing is faster
  int solves = 0;           // deadlines worked out
  std::uint64_t nodes = 0;  // of the enumeration
  [[nodiscard]] double gap() const { return round_s > 0 ? (round_s - bound_s) / round_s : 0; }
};
[[nodiscard]] ChosenCuts choose_cuts(const Problem& problem, const CutSearch& search = {});

// The option that serves a device best at a deadline T and root prices v: least (q.v)^2 / (T - alpha) among those with alpha < T, the first
// of equal ones. `left_s` is T - alpha of it. None where no option has alpha < T.
struct Response {
  std::uint32_t option = 0;
  double cost = 0;
  double left_s = 0;
  bool exists = false;
};
[[nodiscard]] Response best_response(std::span<const Option> options, double deadline_s, const PerResource& root_price);
[[nodiscard]] double cost_of(const Option& option, double deadline_s, const PerResource& root_price);

// Each device's fastest option when it has everything to itself.
[[nodiscard]] Cuts alone_best(const Problem& problem);
// No cuts and no schedule are faster than the slowest device alone.
[[nodiscard]] double slowest_alone_s(const Problem& problem);

// (15), the best prices found: no choice of cuts is faster than bound_s.
struct PriceBound {
  double bound_s = 0;
  PerResource root_price{};
  Cuts cuts;  // the best responses there
};
// Searches below `known_s`, the round of some choice, until the bound is at least `enough_s`; `start`: root prices to try first.
[[nodiscard]] PriceBound price_bound(const Problem& problem, double known_s, double enough_s, const PerResource& start);

}  // namespace rehearse::federated
