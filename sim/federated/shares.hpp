// The exact shares for given cuts: a deadline T can be met iff the spectral radius of the load matrix A(T) = sum q q^T / (T - alpha) is at
// most 1; T* is where it is 1 (docs/federated.md, equations 12 and 13).
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/federated/problem.hpp"

namespace rehearse::federated {

// Where the deadline is met, without the shares.
struct Deadline {
  double round_s = 0;
  PerResource root_price{};  // v, of length 1: the Perron vector; 0 outside the group of resources that decides, all 0 where none does
  double slope = 0;          // sum of (q.v / (T - alpha))^2: how fast the price of the cheapest demands falls with T
  int steps = 0;             // of Newton's method
};

// Climbs to T* from below without overshooting: Newton's method on 1 / radius, which is concave (a minimum of harmonic means).
// `known_s`: a deadline that others meet already; where these do not meet an earlier one, any deadline from known_s on may come back.
[[nodiscard]] Deadline least_deadline(std::span<const Option> chosen, double known_s = std::numeric_limits<double>::infinity());

struct Shares {
  double round_s = 0;              // the largest latency
  double certificate_s = 0;        // no shares are faster (11), worked out from `blame` alone
  PerResource prices{};            // of the resources; they add up to 1, or are all 0 where a device alone sets the round
  PerResource seconds_per_log{};   // what the round loses when the logarithm of a capacity grows: -dT / d ln(capacity)
  std::vector<PerResource> share;  // [device]; 0 of what it does not use
  std::vector<double> blame;       // [device] dT / d alpha; they add up to 1
  std::vector<double> latency_s;   // [device] with its shares
  int steps = 0;
};
[[nodiscard]] Shares exact_shares(std::span<const Option> chosen);

// (11): sum mu alpha + sum over resources of (sum sqrt(mu) q)^2, a lower bound of the round for any mu >= 0 that adds up to 1.
[[nodiscard]] double dual_bound_s(std::span<const Option> chosen, std::span<const double> mu);

// alpha + sum of root^2 / share.
[[nodiscard]] double latency_s(const Option& option, const PerResource& share);

// No schedule whatever is faster (14): a device alone, a resource that is never idle.
[[nodiscard]] double any_schedule_s(std::span<const Option> chosen);

}  // namespace rehearse::federated
