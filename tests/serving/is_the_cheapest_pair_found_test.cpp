// The search over pairs of plans against trying everything, on random problems; and problems whose answer is known by construction.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sim/serving/pair_search.hpp"

namespace rehearse::tests {
namespace {

using sim::PairAnswer;
using sim::PairChoice;
using sim::PairModel;
using sim::PairProblem;
using sim::SidePlan;

// Waits that fall with the number of instances, a price of its own for every pair.
class Tables final : public PairModel {
 public:
  struct Side {
    double service_s = 0, load = 0;  // of prompts
    int least = 1;                   // of decoding
    double first_s = 0, queue_s = 0;
  };
  std::vector<Side> prompts, decodes;
  std::vector<std::vector<double>> between, more;  // what lies between at least, and what it takes more where many hand over
  double within_s = 0;

  [[nodiscard]] double between_s(std::size_t prompt_plan, int prompters, std::size_t decode_plan, int decoders) const {
    return between[prompt_plan][decode_plan] + more[prompt_plan][decode_plan] * ((prompters + 2 * decoders) % 3);
  }
  [[nodiscard]] bool keeps(std::size_t prompt_plan, int prompters, std::size_t decode_plan, int decoders) const override {
    const Side& side = prompts[prompt_plan];
    if (prompters <= side.load || decoders < decodes[decode_plan].least) return false;
    const double takes_s = side.service_s + side.service_s * side.load / (prompters - side.load);
    const double budget_s = within_s - between_s(prompt_plan, prompters, decode_plan, decoders) - decoders_take_s(decode_plan, decoders);
    return takes_s <= budget_s;
  }

  [[nodiscard]] int least_decoders(std::size_t plan) const override { return decodes[plan].least; }
  [[nodiscard]] double decoders_take_s(std::size_t plan, int number) const override {
    return decodes[plan].first_s + decodes[plan].queue_s / number;
  }
  [[nodiscard]] double between_s(std::size_t prompt_plan, std::size_t decode_plan) const override {
    return between[prompt_plan][decode_plan];
  }
  [[nodiscard]] int least_prompters(std::size_t plan, double within_s) const override {
    const Side& side = prompts[plan];
    for (int n = 1; n <= 64; ++n) {
      if (n > side.load && side.service_s + side.service_s * side.load / (n - side.load) <= within_s) return n;
    }
    return sim::no_number;
  }
};

struct Case {
  PairProblem problem;
  Tables tables;
};

Case random_case(std::mt19937& random) {
  const auto whole = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  Case out;
  const int parts = whole(1, 3);
  for (int i = 0; i < parts; ++i) out.problem.inventory.push_back(whole(2, 24));
  out.problem.within_s = real(0.2, 3);
  const auto plans = [&] {
    std::vector<SidePlan> all;
    // Costs are whole, so that ties are ties.
    for (int i = whole(1, 6); i > 0; --i) {
      const int gpus = 1 << whole(0, 3);
      all.push_back({static_cast<std::size_t>(whole(0, parts - 1)), gpus, static_cast<double>(gpus * whole(1, 4))});
    }
    return all;
  };
  out.tables.within_s = out.problem.within_s;
  out.problem.prompts = plans();
  out.problem.decodes = plans();
  for (std::size_t i = 0; i < out.problem.prompts.size(); ++i) {
    out.tables.prompts.push_back({.service_s = real(0.05, 1), .load = real(0.1, 5)});
    out.tables.between.emplace_back();
    out.tables.more.emplace_back();
    for (std::size_t k = 0; k < out.problem.decodes.size(); ++k) {
      out.tables.between.back().push_back(whole(0, 9) == 0 ? INFINITY : real(0, 0.5));
      out.tables.more.back().push_back(whole(0, 1) == 0 ? 0 : real(0, 0.3));
    }
  }
  for (std::size_t k = 0; k < out.problem.decodes.size(); ++k) {
    out.tables.decodes.push_back(
        {.least = whole(0, 9) == 0 ? sim::no_number : whole(1, 4), .first_s = real(0, 0.1), .queue_s = real(0, 2)});
  }
  return out;
}

// Every pair with every number of both.
std::vector<double> everything(const Case& given, std::size_t keep) {
  std::vector<double> costs;
  for (std::size_t i = 0; i < given.problem.prompts.size(); ++i) {
    for (std::size_t k = 0; k < given.problem.decodes.size(); ++k) {
      const SidePlan &p = given.problem.prompts[i], &d = given.problem.decodes[k];
      double best = INFINITY;
      for (int np = 1; np * p.gpus <= given.problem.inventory[p.part]; ++np) {
        for (int nd = 1; nd * d.gpus <= given.problem.inventory[d.part]; ++nd) {
          if (p.part == d.part && np * p.gpus + nd * d.gpus > given.problem.inventory[p.part]) continue;
          if (given.tables.decodes[k].least == sim::no_number) continue;
          if (given.tables.keeps(i, np, k, nd)) best = std::min(best, np * p.cost + nd * d.cost);
        }
      }
      if (std::isfinite(best)) costs.push_back(best);
    }
  }
  std::ranges::sort(costs);
  if (costs.size() > keep) costs.resize(keep);
  return costs;
}

TEST(TheCheapestPair, is_that_of_trying_everything) {
  std::mt19937 random(19);
  int solved = 0, left_out = 0, unequal_parts = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    const Case given = random_case(random);
    for (const std::size_t keep : {1U, 4U}) {
      const PairAnswer found = cheapest_pairs(given.problem, given.tables, keep);
      const std::vector<double> expected = everything(given, keep);
      ASSERT_EQ(found.best.size(), expected.size()) << trial;
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(found.best[i].cost, expected[i]) << trial;
      ASSERT_LE(found.looked_at, found.pairs);
      if (found.best.empty() || keep > 1) continue;
      ++solved;
      left_out += found.looked_at < found.pairs ? 1 : 0;
      ASSERT_GT(found.bound, found.best.back().cost);  // the certificate
      const PairChoice& best = found.best.front();
      unequal_parts += given.problem.prompts[best.prompts].part != given.problem.decodes[best.decodes].part ? 1 : 0;
    }
  }
  EXPECT_GT(solved, 4'000);
  EXPECT_GT(left_out, 1'000);
  EXPECT_GT(unequal_parts, 500);
}

}  // namespace
}  // namespace rehearse::tests
