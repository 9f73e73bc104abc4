// Servers of several speeds behind one queue: how many of each work, and who waits.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace rehearse::sim {

struct ServerKind {
  double number = 1;
  double service_s = 0;  // mean
};

struct ServerQueue {
  double waits = 0;            // chance to find all at work; beyond their capacity 1
  double wait_s = 0;           // of exponential services, mean over all; beyond their capacity infinite
  std::vector<double> shares;  // of those who come, by kind
};

// Poisson arrivals that go to the next idle server behind the one taken last, in turn, else wait for the first that is free. Up to
// `most_chained` servers by their Markov chain, exact for exponential services; of more the waits are those with idle servers taken at
// random (exact for that: E. J. Gumbel, Waiting lines with heterogeneous servers, Operations Research 8, 1960; Erlang's C for one kind),
// and turns are taken for as many arrivals apart as servers are found idle in one round.
inline constexpr int most_chained = 6;
[[nodiscard]] ServerQueue unlike_servers(std::span<const ServerKind> kinds, double rate_per_s);

// Shares of kinds that are always sent who comes next where the fewest are, at one of those at random, when there are many of each: all
// have n or n + 1. `rate_of` a kind and a number of requests in it: so many that one of its servers ends in a second; never falls with the
// number.
[[nodiscard]] std::vector<double> fewest_first_shares(std::span<const double> numbers,
                                                      const std::function<double(std::size_t kind, int requests)>& rate_of,
                                                      double rate_per_s, int most);

}  // namespace rehearse::sim
