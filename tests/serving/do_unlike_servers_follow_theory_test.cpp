// Servers of several speeds behind one queue, by formula, against theory, their Markov chain and a simulation of the queue alone.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "config/random.hpp"
#include "sim/serving/pool_formula.hpp"
#include "sim/serving/unlike_servers.hpp"

namespace rehearse::tests {
namespace {

using sim::ServerKind;
using sim::ServerQueue;

struct Simulated {
  std::vector<double> shares;
  double wait_s = 0;
};

// Who comes goes to the server with the least work left, equals in turn.
Simulated queue_of(const std::vector<ServerKind>& kinds, double rate_per_s, bool exponential) {
  constexpr int requests = 400'000;
  std::vector<double> services, free_at;
  std::vector<std::size_t> kind_of;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    for (int i = 0; i < static_cast<int>(kinds[kind].number); ++i) {
      services.push_back(kinds[kind].service_s);
      kind_of.push_back(kind);
    }
  }
  free_at.resize(services.size());
  config::Random random(7);
  Simulated out{std::vector<double>(kinds.size()), 0};
  double now = 0;
  std::size_t next = 0;
  for (int request = 0; request < requests; ++request) {
    now -= std::log(1 - random.uniform()) / rate_per_s;
    const auto left = [&](std::size_t i) { return std::max(0.0, free_at[i] - now); };
    std::size_t best = next;
    for (std::size_t step = 1; step < services.size(); ++step) {
      const std::size_t i = (next + step) % services.size();
      if (left(i) < left(best)) best = i;
    }
    next = (best + 1) % services.size();
    out.wait_s += left(best) / requests;
    out.shares[kind_of[best]] += 1.0 / requests;
    free_at[best] = now + left(best) + services[best] * (exponential ? -std::log(1 - random.uniform()) : 1);
  }
  return out;
}

double capacity(const std::vector<ServerKind>& kinds) {
  return std::accumulate(kinds.begin(), kinds.end(), 0.0,
                         [](double sum, const ServerKind& kind) { return sum + kind.number / kind.service_s; });
}

// M/M/n.
TEST(UnlikeServers, of_one_speed_are_erlangs) {
  for (const int servers : {1, 2, 5, 6, 7, 40, 900}) {
    for (const double load : {0.1, 0.5, 0.9}) {
      const ServerQueue queue = sim::unlike_servers(std::array{ServerKind{static_cast<double>(servers), 0.5}}, load * servers / 0.5);
      EXPECT_NEAR(queue.waits, sim::chance_to_wait(servers, load * servers), 1e-8) << servers << " " << load;
      EXPECT_NEAR(queue.shares[0], 1, 1e-8) << servers << " " << load;
    }
  }
}

// Whoever comes finds a server or waits: all are served, and the work that comes keeps as many busy as there are, on average.
TEST(UnlikeServers, take_what_comes) {
  for (const std::vector<ServerKind>& kinds : {std::vector<ServerKind>{{1, 0.05}, {2, 0.3}}, {{3, 0.1}, {5, 0.2}, {1, 0.4}}}) {
    for (const double load : {0.05, 0.4, 0.7, 0.97}) {
      const ServerQueue queue = sim::unlike_servers(kinds, load * capacity(kinds));
      EXPECT_NEAR(std::accumulate(queue.shares.begin(), queue.shares.end(), 0.0), 1, 1e-8) << load;
      EXPECT_GE(queue.waits, 0);
      EXPECT_LE(queue.waits, 1);
    }
    EXPECT_TRUE(std::isinf(sim::unlike_servers(kinds, capacity(kinds)).wait_s));
  }
}

// Exponential services: the chain is exact but for whose turn it is behind a queue.
TEST(UnlikeServers, that_are_few_follow_their_chain) {
  for (const std::vector<ServerKind>& kinds :
       {std::vector<ServerKind>{{1, 0.05}, {2, 0.3}}, {{2, 0.1}, {2, 0.2}}, {{1, 0.3}, {4, 0.1}, {1, 0.05}}}) {
    for (const double load : {0.2, 0.5, 0.7}) {
      const ServerQueue queue = sim::unlike_servers(kinds, load * capacity(kinds));
      const Simulated simulated = queue_of(kinds, load * capacity(kinds), true);
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) EXPECT_NEAR(queue.shares[kind], simulated.shares[kind], 0.005) << load;
      EXPECT_NEAR(queue.wait_s / simulated.wait_s, 1, 0.05) << load;
    }
  }
}

// Equal services, up to a sixth of the others': the mean time of all within 5 % (of more than six servers within 7 %).
TEST(UnlikeServers, of_equal_services_are_near) {
  for (const std::vector<ServerKind>& kinds : {std::vector<ServerKind>{{1, 0.047}, {2, 0.27}},
                                               {{1, 0.1}, {1, 0.2}},
                                               {{2, 0.047}, {2, 0.27}},
                                               {{1, 0.047}, {6, 0.27}},
                                               {{3, 0.1}, {5, 0.2}}}) {
    for (const double load : {0.2, 0.4, 0.6, 0.7}) {
      const double rate = load * capacity(kinds);
      const ServerQueue queue = sim::unlike_servers(kinds, rate);
      const Simulated simulated = queue_of(kinds, rate, false);
      double formula_s = queue.wait_s / 2, simulated_s = simulated.wait_s, servers = 0;
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        formula_s += queue.shares[kind] * kinds[kind].service_s;
        simulated_s += simulated.shares[kind] * kinds[kind].service_s;
        servers += kinds[kind].number;
      }
      EXPECT_NEAR(formula_s / simulated_s, 1, servers > sim::most_chained ? 0.07 : 0.05) << servers << " servers, load " << load;
    }
  }
}

// Two kinds, each sent who comes next where the fewest are: the faster one has more, and with one speed all have as many.
TEST(FewestFirst, keeps_as_many_on_each) {
  const std::array numbers{4.0, 4.0};
  const auto rate_of = [](std::size_t kind, int requests) {
    return requests == 0 ? 0.0 : requests / (kind == 0 ? 1.0 + requests : 2.0 + 2 * requests);
  };
  const std::vector<double> low = sim::fewest_first_shares(numbers, rate_of, 1e-3, 100),
                            high = sim::fewest_first_shares(numbers, rate_of, 5, 100);
  EXPECT_NEAR(low[0], 0.5, 1e-3);       // everybody finds somebody idle
  EXPECT_NEAR(high[0], 2.0 / 3, 0.01);  // all have many: the rates at which they end
  const std::vector<double> alike = sim::fewest_first_shares(
      numbers, [&](std::size_t, int n) { return rate_of(0, n); }, 3, 100);
  EXPECT_NEAR(alike[0], 0.5, 1e-12);
}

}  // namespace
}  // namespace rehearse::tests
