// The decentralised negotiation (docs/federated.md, equation 17): the server announces a deadline and the prices of its resources, every
// device answers with its cheapest demand, and the server uses nothing but the sums of the answers.
#pragma once

#include <cstdint>

#include "sim/federated/cuts.hpp"

namespace rehearse::federated {

struct Negotiation {
  Cuts cuts;
  double round_s = 0;
  bool settled = false;                     // the demands were within the tolerance of what there is
  bool fixed_point = false;                 // no device wants another cut, so that nothing is faster
  std::int64_t rounds = 0;                  // announcements and answers
  double numbers_up = 0, numbers_down = 0;  // of each device, all rounds together
};

// With cuts free: every device answers with its own best cut. Where that swings between cuts, they are settled one group of moves after the
// other, as in the central search.
[[nodiscard]] Negotiation negotiate(const Problem& problem);
// With given cuts.
[[nodiscard]] Negotiation negotiate(std::span<const Option> chosen);

inline constexpr double bytes_per_number = 8;

}  // namespace rehearse::federated
