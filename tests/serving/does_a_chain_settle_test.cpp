// Chains whose chances are known: a queue of one server with a last place, and random bands by many steps.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/serving/banded_chain.hpp"
#include "sim/serving/pass_queue.hpp"
#include "sim/serving/settling.hpp"

namespace rehearse::tests {
namespace {

// Up with chance p, down with 1 - p: of n + 1 states the chances are as the powers of p / (1 - p), however large.
TEST(AChainsChances, of_a_queue_are_powers_of_its_load) {
  for (const double up : {0.2, 0.45, 0.5, 0.6, 0.9}) {
    constexpr int states = 900;
    sim::BandedChain chain(states, 1, 1);
    for (int i = 0; i < states; ++i) {
      chain.step(i, std::max(0, i - 1)) += 1 - up;
      chain.step(i, std::min(states - 1, i + 1)) += up;
    }
    const std::vector<double> chances = sim::SolvedChain(std::move(chain)).settled();
    const double ratio = up / (1 - up);
    double sum = 0;
    for (int i = 0; i < states; ++i) {
      sum += chances[static_cast<std::size_t>(i)];
      if (i > 0 && chances[static_cast<std::size_t>(i - 1)] > 1e-200) {
        EXPECT_NEAR(chances[static_cast<std::size_t>(i)] / chances[static_cast<std::size_t>(i - 1)], ratio, 1e-9 * ratio) << up << ' ' << i;
      }
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(AChainsChances, stay_as_they_are_when_it_steps) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> real(0, 1);
  for (int trial = 0; trial < 200; ++trial) {
    const int states = 2 + static_cast<int>(real(random) * 40), down = 1 + static_cast<int>(real(random) * 6),
              up = static_cast<int>(real(random) * 9);
    sim::BandedChain chain(states, down, up);
    std::vector<std::vector<double>> steps(static_cast<std::size_t>(states), std::vector<double>(static_cast<std::size_t>(states), 0));
    for (int from = 0; from < states; ++from) {
      double sum = 0;
      std::vector<double>& row = steps[static_cast<std::size_t>(from)];
      for (int to = std::max(0, from - down); to <= std::min(states - 1, from + up); ++to) {
        const bool must = to == from - 1 || (from == 0 && to == 0);
        sum += row[static_cast<std::size_t>(to)] = must || real(random) < 0.5 ? real(random) : 0;
      }
      for (int to = std::max(0, from - down); to <= std::min(states - 1, from + up); ++to)
        chain.step(from, to) = row[static_cast<std::size_t>(to)] /= sum;
    }
    const std::vector<double> chances = sim::SolvedChain(std::move(chain)).settled();
    for (int to = 0; to < states; ++to) {
      double came = 0;
      for (int from = 0; from < states; ++from)
        came += chances[static_cast<std::size_t>(from)] * steps[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
      EXPECT_NEAR(came, chances[static_cast<std::size_t>(to)], 1e-13) << trial;
    }
  }
}

template <class F>
double settled_from(double begin, F f, double within) {
  sim::Settling x(begin);
  for (int round = 0; round < 200 && !x.jumps(within); ++round) {
    const double at = x.at(), leads_to = f(at);
    if (std::abs(leads_to - at) <= within * at) return at;
    x.take(at, leads_to);
  }
  EXPECT_TRUE(x.jumps(within)) << begin;
  return x.at();
}

// x = 3 + 0.9 x, x = 3 + 0.99 x and x^2 = 100 (x + 1); a step down that leads over the place where it is.
TEST(ANumberThatGrowsWithItself, settles_in_one_place_wherever_it_begins) {
  for (const double begin : {0.0, 1.0, 19.0, 21.0, 500.0, 1e4}) {
    EXPECT_NEAR(settled_from(
                    begin, [](double x) { return 3 + 0.9 * x; }, 1e-9),
                30, 1e-6)
        << begin;
    EXPECT_NEAR(settled_from(
                    begin, [](double x) { return 3 + 0.99 * x; }, 1e-9),
                300, 1e-4)
        << begin;
    EXPECT_NEAR(settled_from(
                    begin, [](double x) { return 10 * std::sqrt(x + 1); }, 1e-9),
                50 + std::sqrt(2600), 1e-5)
        << begin;
    EXPECT_NEAR(settled_from(
                    begin, [](double x) { return x < 20 ? 25.0 : 15.0; }, 1e-6),
                20, 1e-4)
        << begin;
  }
}

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& one, const Matrix& other) {
  Matrix out(one.size(), std::vector<double>(other.front().size(), 0));
  for (std::size_t row = 0; row < one.size(); ++row) {
    for (std::size_t i = 0; i < other.size(); ++i) {
      for (std::size_t column = 0; column < other[i].size(); ++column) out[row][column] += one[row][i] * other[i][column];
    }
  }
  return out;
}

// Where each of random chains ends, and at what cost, against walking on until hardly anybody is left: twice as far each time.
TEST(AChainsEnds, are_where_its_steps_lead) {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> real(0, 1);
  for (int trial = 0; trial < 50; ++trial) {
    const int ends = 1 + static_cast<int>(real(random) * 4), states = ends + 1 + static_cast<int>(real(random) * 20), down = 4, up = 5;
    sim::BandedChain chain(states, down, up);
    Matrix steps(static_cast<std::size_t>(states), std::vector<double>(static_cast<std::size_t>(states), 0));
    std::vector<double> costs(static_cast<std::size_t>(states), 0);
    for (int from = ends; from < states; ++from) {
      const auto row = static_cast<std::size_t>(from);
      double sum = 0;
      for (int to = std::max(0, from - down); to <= std::min(states - 1, from + up); ++to)
        sum += steps[row][static_cast<std::size_t>(to)] = real(random) / (to < from ? 1 : 3);
      for (int to = std::max(0, from - down); to <= std::min(states - 1, from + up); ++to)
        chain.step(from, to) = steps[row][static_cast<std::size_t>(to)] /= sum;
      costs[row] = real(random);
    }
    const std::vector<double> ended = sim::SolvedChain(std::move(chain)).ended(ends, costs);
    for (std::size_t end = 0; end < static_cast<std::size_t>(ends); ++end) steps[end][end] = 1;
    Matrix cost;
    for (const double one : costs) cost.push_back({one});
    for (int doubled = 0; doubled < 11; ++doubled) {
      const Matrix later = product(steps, cost);
      for (std::size_t from = 0; from < cost.size(); ++from) cost[from][0] += later[from][0];
      steps = product(steps, steps);
    }
    for (std::size_t begin = 0; begin < steps.size(); ++begin) {
      const double* row = ended.data() + begin * static_cast<std::size_t>(ends + 1);
      for (int end = 0; end < ends; ++end) EXPECT_NEAR(row[end], steps[begin][static_cast<std::size_t>(end)], 1e-12) << trial;
      EXPECT_NEAR(row[ends], cost[begin][0], 1e-10 * (1 + cost[begin][0])) << trial;
    }
  }
}

// Prompts one by one, all of a second, before any decoding: M/D/1. Behind one are as many as Pollaczek and Khinchine say, and each takes
// 1 / (1 - load) until nobody is left, however many they are.
TEST(PromptsThatGoFirst, are_over_when_a_busy_period_is) {
  constexpr double decode_s = 0.01;
  for (const double load : {0.3, 0.6, 0.8}) {
    sim::PassQueue queue;
    queue.rate_per_s = load;
    queue.mixes = false;
    queue.pass_s = queue.beside_s = {decode_s, 1};
    const sim::QueuedPasses passes(queue);
    const double behind = load + load * load / (2 * (1 - load));
    EXPECT_NEAR(passes.tokens_s(1), behind / (1 - load) + decode_s, 2e-3 * behind / (1 - load)) << load;
  }
}

// However many share a pass: where it takes a second for each of them, what stands behind a prompt is over with a busy period's growth.
TEST(PromptsThatGoFirst, are_over_alike_in_passes_of_one_and_of_many) {
  constexpr double decode_s = 0.01;
  for (const int most : {1, 4, 32, 256}) {
    for (const double load : {0.3, 0.8, 0.95}) {
      sim::PassQueue queue;
      queue.rate_per_s = load;
      queue.most = most;
      queue.mixes = false;
      for (int prompts = 0; prompts <= most; ++prompts) queue.pass_s.push_back(prompts > 0 ? prompts : decode_s);
      queue.beside_s = queue.pass_s;
      const sim::QueuedPasses passes(queue);
      EXPECT_NEAR(passes.tokens_s(1), passes.joining() + decode_s, 3e-3 * passes.joining()) << most << ' ' << load;
    }
  }
}

// One prompt a pass at most, which then takes `long_s` instead of `short_s`: K passes with N prompts take K short_s + N (long_s - short_s),
// in which N come but for Poisson's noise, so that the variance of N over its mean is 1 / (1 - rate (long_s - short_s))^2. A sequence of K
// passes sees as many beside it as that is more than 1, above the mean.
TEST(WhoDecodesBesideOne, are_more_where_prompts_make_passes_long) {
  constexpr double short_s = 0.02, long_s = 0.05, passes_each = 4000;
  for (const double rate_per_s : {2.0, 8.0, 14.0}) {
    sim::PassQueue queue;
    queue.rate_per_s = rate_per_s;
    queue.idle = 0;
    queue.pass_s = queue.beside_s = {short_s, long_s};
    const sim::QueuedPasses passes(queue);
    const double more = std::pow(1 - rate_per_s * (long_s - short_s), -2) - 1;
    EXPECT_NEAR(passes.sequences_beside(passes_each) - rate_per_s * passes.token_s() * passes_each, more, 0.03 * (1 + more)) << rate_per_s;
    EXPECT_EQ(passes.sequences_beside(1), 0);  // of one pass
  }
}

// At one server with equal services no longer than t wait (1 - load) * sum_k (rate * (k * service - t))^k / k! * e^(-rate * (k * service
// - t)), k to t / service (Erlang, 1909).
TEST(AChainsChances, are_erlangs_waits_of_one_server) {
  for (const double load : {0.3, 0.6, 0.8, 0.9}) {
    constexpr double service_s = 0.25;
    const double rate = load / service_s;
    sim::PassQueue queue;
    queue.rate_per_s = rate;
    queue.pass_s = {0, service_s};
    const sim::QueuedPasses passes(queue);
    for (const double share : {0.75, 0.9, 0.95, 0.99}) {
      const double waits_s = passes.first_token_within_s(share) - service_s;
      double within = 0, factorial = 1;
      for (int k = 0; k <= waits_s / service_s; factorial *= ++k) {
        const double x = rate * (k * service_s - waits_s);
        within += (1 - load) * std::pow(x, k) / factorial * std::exp(-x);
      }
      if (1 - load > share) within = share;  // who does not wait
      EXPECT_NEAR(within, share, 0.003) << load << ' ' << waits_s;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
