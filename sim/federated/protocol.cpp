#include "sim/federated/protocol.hpp"

#include <algorithm>
#include <cmath>

#include "sim/federated/descent.hpp"

namespace rehearse::federated {
namespace {

constexpr double tolerance = 1e-11;  // of the demands around what there is
constexpr int most_rounds = 20'000;
constexpr double least_root_price = 1e-6;  // what nobody wants now may be wanted later: a price of 0 would be one for ever

// What the server knows after a round: sums over the devices.
struct Answers {
  PerResource demand{};
  double slope = 0;
  int refusals = 0;  // devices that cannot meet the deadline at any price
};

void add(const Option& option, double left_s, const PerResource& v, Answers& sums) {
  const double scale = dot(option.root, v) / left_s;
  for (int i = 0; i < max_resources; ++i) sums.demand[i] += v[i] > 0 ? option.root[i] * scale / v[i] : 0;
  sums.slope += scale * scale;
}

PerResource unit_vector(PerResource v) {
  const double length = std::sqrt(dot(v, v));
  for (double& x : v) x /= length;
  return v;
}

class ProtocolServer {
 public:
  // `sequential_s`: the sum of the times that the devices would need alone, with which any deadline can be met; itself a sum.
  explicit ProtocolServer(double sequential_s) : high_s_(sequential_s), deadline_s_(sequential_s) {}

  [[nodiscard]] double deadline_s() const { return deadline_s_; }
  [[nodiscard]] const PerResource& root_prices() const { return v_; }
  [[nodiscard]] double slope() const { return slope_; }
  [[nodiscard]] bool settled() const { return settled_; }

  // Nothing is faster than a deadline that some device refuses, or at which the cheapest demands cost more than there is; one at which they
  // fit can be met. Between the two the next one is Newton's, else in the middle.
  void take(const Answers& sums) {
    double next_s = 0;
    if (sums.refusals > 0) {
      low_s_ = std::max(low_s_, deadline_s_);
    } else {
      next_s = look(sums);
    }
    if (settled_) return;
    settled_ = high_s_ - low_s_ <= tolerance * high_s_;
    deadline_s_ = settled_ ? high_s_ : next_s > low_s_ && next_s < high_s_ ? next_s : (low_s_ + high_s_) / 2;
  }

 private:
  // Newton's next deadline; 0: none.
  double look(const Answers& sums) {
    double cost = 0, largest = 0;
    for (int i = 0; i < max_resources; ++i) {
      cost += v_[i] * v_[i] * sums.demand[i];
      largest = std::max(largest, sums.demand[i]);
    }
    slope_ = sums.slope;
    settled_ = std::abs(cost - 1) <= tolerance && largest <= 1 + tolerance;
    if (cost >= 1) low_s_ = std::max(low_s_, deadline_s_);
    if (largest <= 1) high_s_ = std::min(high_s_, deadline_s_);
    if (settled_ || sums.slope <= 0) return 0;
    for (int i = 0; i < max_resources; ++i) v_[i] = std::max(v_[i] * sums.demand[i], least_root_price);
    v_ = unit_vector(v_);
    return deadline_s_ + cost * (cost - 1) / sums.slope;
  }

  double low_s_ = 0, high_s_;
  double deadline_s_;
  PerResource v_ = unit_vector({1, 1, 1});
  double slope_ = 0;
  bool settled_ = false;
};

double sequential_s(std::span<const Option> chosen) {
  double sum_s = 0;
  for (const Option& option : chosen) sum_s += option.alone_s();
  return sum_s;
}

// Rounds are counted in `rounds`.
federated::Deadline agree(std::span<const Option> chosen, std::int64_t& rounds, bool& settled) {
  ProtocolServer server(sequential_s(chosen));
  ++rounds;  // the sum of the times alone
  for (int round = 0; round < most_rounds && !server.settled(); ++round) {
    Answers sums;
    for (const Option& option : chosen) {
      const double left_s = server.deadline_s() - option.alpha_s;
      left_s > 0 ? add(option, left_s, server.root_prices(), sums) : void(++sums.refusals);
    }
    server.take(sums);
    ++rounds;
  }
  settled = server.settled();
  return {.round_s = server.deadline_s(), .root_price = server.root_prices(), .slope = server.slope()};
}

Negotiation counted(Negotiation negotiation) {
  constexpr double up = max_resources + 1, down = max_resources + 1;  // demands and slope; prices and deadline
  negotiation.numbers_up = up * static_cast<double>(negotiation.rounds);
  negotiation.numbers_down = down * static_cast<double>(negotiation.rounds);
  return negotiation;
}

// Every device answers with its best cut of the moment.
bool free_rounds(const Problem& problem, Negotiation& out) {
  double alone_s = 0;
  for (std::size_t n = 0; n < problem.devices(); ++n) alone_s += std::ranges::min_element(problem.of(n), {}, &Option::alone_s)->alone_s();
  ProtocolServer server(alone_s);
  constexpr int patience = 200;  // then it swings
  for (int round = 0; round < patience && !server.settled(); ++round) {
    Answers sums;
    Cuts cuts;
    for (std::size_t n = 0; n < problem.devices(); ++n) {
      const Response best = best_response(problem.of(n), server.deadline_s(), server.root_prices());
      cuts.push_back(best.option);
      best.exists ? add(problem.of(n)[best.option], best.left_s, server.root_prices(), sums) : void(++sums.refusals);
    }
    out.cuts = std::move(cuts);
    server.take(sums);
    ++out.rounds;
  }
  out.round_s = server.deadline_s();
  return server.settled();
}

}  // namespace

Negotiation negotiate(std::span<const Option> chosen) {
  Negotiation out;
  out.round_s = agree(chosen, out.rounds, out.settled).round_s;
  return counted(out);
}

Negotiation negotiate(const Problem& problem) {
  Negotiation out;
  if (free_rounds(problem, out)) {
    out.settled = out.fixed_point = true;
    return counted(out);
  }
  const Descended found = descend(problem, out.cuts.empty() ? alone_best(problem) : out.cuts, 0,
                                  [&](std::span<const Option> chosen, double) { return agree(chosen, out.rounds, out.settled); });
  out.cuts = found.cuts;
  out.round_s = found.at.round_s;
  out.fixed_point = found.fixed_point;
  return counted(out);
}

}  // namespace rehearse::federated
