// The Pareto front of deployments, and several plans in one role, against trying everything on random problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <tuple>

#include "sim/serving/deployment_front.hpp"
#include "sim/serving/pool_cover.hpp"

namespace rehearse::tests {
namespace {

using sim::Cover;
using sim::CoverProblem;
using sim::DeploymentFront;
using sim::FrontGoal;
using sim::FrontPoint;
using sim::FrontProblem;
using sim::FrontSide;
using sim::FrontValues;

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

 private:
  std::mt19937 random_;
};

struct FrontCase {
  FrontProblem problem;
  std::vector<std::vector<double>> between, more;  // what lies between at least, and what it takes more with so many
  [[nodiscard]] double more_s(std::size_t p, int prompters, std::size_t d, int decoders) const {
    return more[p][d] * ((prompters + 2 * decoders) % 3);
  }
};

// Times in eighths, so that sums are exact and ties are ties.
FrontCase random_front(Draw& draw) {
  FrontCase out;
  const int parts = draw.whole(1, 2);
  for (int i = 0; i < parts; ++i) out.problem.inventory.push_back(draw.whole(1, 10));
  out.problem.within_s = draw.whole(0, 3) == 0 ? INFINITY : draw.whole(8, 40) / 8.0;
  out.problem.per_token_s = draw.whole(0, 3) == 0 ? INFINITY : draw.whole(1, 16) / 8.0;
  const auto sides = [&] {
    std::vector<FrontSide> all;
    for (int i = draw.whole(1, 4); i > 0; --i) {
      FrontSide side;
      side.plan = {static_cast<std::size_t>(draw.whole(0, parts - 1)), 1 << draw.whole(0, 2), 0};
      side.plan.cost = side.plan.gpus * draw.whole(1, 3);
      double ttft_s = draw.whole(8, 64) / 8.0, tpot_s = draw.whole(4, 24) / 8.0;
      for (int n = 1; n * side.plan.gpus <= out.problem.inventory[side.plan.part]; ++n) {
        side.states.push_back(n == 1 && draw.whole(0, 4) == 0 ? FrontSide::State{INFINITY, INFINITY} : FrontSide::State{ttft_s, tpot_s});
        ttft_s = std::max(0.125, ttft_s - draw.whole(0, 16) / 8.0);
        tpot_s = std::max(0.125, tpot_s - draw.whole(0, 8) / 8.0);
      }
      all.push_back(std::move(side));
    }
    return all;
  };
  out.problem.prompts = sides();
  out.problem.decodes = sides();
  for (std::size_t p = 0; p < out.problem.prompts.size(); ++p) {
    out.between.emplace_back();
    out.more.emplace_back();
    for (std::size_t d = 0; d < out.problem.decodes.size(); ++d) {
      out.between.back().push_back(draw.whole(0, 7) == 0 ? INFINITY : draw.whole(0, 8) / 8.0);
      out.more.back().push_back(draw.whole(0, 1) == 0 ? 0 : draw.whole(0, 4) / 8.0);
    }
  }
  return out;
}

std::vector<FrontValues> all_values(const FrontCase& given) {
  std::vector<FrontValues> all;
  const FrontProblem& problem = given.problem;
  for (std::size_t i = 0; i < problem.prompts.size(); ++i) {
    for (std::size_t k = 0; k < problem.decodes.size(); ++k) {
      const FrontSide &p = problem.prompts[i], &d = problem.decodes[k];
      for (int np = 1; np <= static_cast<int>(p.states.size()); ++np) {
        for (int nd = 1; nd <= static_cast<int>(d.states.size()); ++nd) {
          const int taken = np * p.plan.gpus + nd * d.plan.gpus;
          if (p.plan.part == d.plan.part && taken > problem.inventory[p.plan.part]) continue;
          const FrontSide::State &prompt = p.states[static_cast<std::size_t>(np) - 1], &decode = d.states[static_cast<std::size_t>(nd) - 1];
          const double more_s = given.more_s(i, np, k, nd), tpot_s = decode.tpot_s + more_s / 8;
          const double ttft_s = prompt.ttft_s + given.between[i][k] + decode.ttft_s + more_s;
          if (!std::isfinite(ttft_s) || ttft_s > problem.within_s || tpot_s > problem.per_token_s) continue;
          if (given.between[i][k] >= problem.within_s) continue;
          all.push_back({np * p.plan.cost + nd * d.plan.cost, static_cast<double>(taken), ttft_s, tpot_s});
        }
      }
    }
  }
  return all;
}

TEST(TheFront, is_that_of_trying_everything) {
  Draw draw(23);
  std::size_t points = 0, several = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    FrontCase given = random_front(draw);
    given.problem.between_s = [&](std::size_t p, std::size_t d) { return given.between[p][d]; };
    given.problem.times = [&](std::size_t p, int prompters, std::size_t d, int decoders) {
      const auto &prompt = given.problem.prompts[p].states[static_cast<std::size_t>(prompters) - 1],
                 &decode = given.problem.decodes[d].states[static_cast<std::size_t>(decoders) - 1];
      const double more_s = given.more_s(p, prompters, d, decoders);
      return sim::FrontTimes{prompt.ttft_s + given.between[p][d] + decode.ttft_s + more_s, decode.tpot_s + more_s / 8};
    };
    std::vector<FrontGoal> goals{FrontGoal::cost, FrontGoal::gpus, FrontGoal::ttft, FrontGoal::tpot};
    goals.erase(goals.begin() + draw.whole(0, 3));
    if (draw.whole(0, 1) == 0) goals.pop_back();
    const auto of = [&](const FrontValues& values) {
      std::vector<double> out;
      for (const FrontGoal goal : goals) out.push_back(values[static_cast<std::size_t>(goal)]);
      return out;
    };
    std::vector<std::vector<double>> all, expected, found;
    for (const FrontValues& values : all_values(given)) all.push_back(of(values));
    const auto beats = [](const std::vector<double>& one, const std::vector<double>& other) {
      bool better = false;
      for (std::size_t i = 0; i < one.size(); ++i) {
        if (one[i] > other[i]) return false;
        better = better || one[i] < other[i];
      }
      return better;
    };
    for (const auto& one : all) {
      if (std::ranges::none_of(all, [&](const auto& other) { return beats(other, one); })) expected.push_back(one);
    }
    std::ranges::sort(expected);
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    DeploymentFront front(goals);
    add_pairs(given.problem, front);
    for (const FrontPoint& point : front.sorted()) found.push_back(of(point.values));
    ASSERT_EQ(found, expected) << trial;
    points += found.size();
    several += found.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(points, 10'000U);
  EXPECT_GT(several, 1'500U);
}

CoverProblem random_cover(Draw& draw) {
  CoverProblem problem;
  problem.roles = static_cast<std::size_t>(draw.whole(1, 2));
  const int parts = draw.whole(1, 3);
  for (int i = 0; i < parts; ++i) {
    problem.inventory.push_back(draw.whole(0, parts == 3 ? 4 : 7));
    problem.price_per_s.push_back(draw.whole(1, 4));
  }
  for (int i = draw.whole(1, 5); i > 0; --i) {
    problem.plans.push_back({static_cast<std::size_t>(draw.whole(0, static_cast<int>(problem.roles) - 1)),
                             static_cast<std::size_t>(draw.whole(0, parts - 1)), draw.whole(1, 4), draw.whole(1, 40) / 8.0});
  }
  problem.rate_per_s = draw.whole(1, 60) / 8.0;
  return problem;
}

// Every number of every plan.
std::pair<double, int> cheapest_of_everything(const CoverProblem& problem) {
  std::pair<double, int> best(INFINITY, 0);
  std::vector<double> rates(problem.roles);
  std::vector<int> gpus(problem.inventory.size());
  const std::function<void(std::size_t)> next = [&](std::size_t plan) {
    if (plan == problem.plans.size()) {
      if (std::ranges::any_of(rates, [&](double rate) { return rate < problem.rate_per_s; })) return;
      double cost = 0;
      int sum = 0;
      for (std::size_t part = 0; part < gpus.size(); ++part) {
        cost += gpus[part] * problem.price_per_s[part];
        sum += gpus[part];
      }
      best = std::min(best, std::pair(cost, sum));
      return;
    }
    const sim::CoverPlan& one = problem.plans[plan];
    const double rate = rates[one.role];
    const int taken = gpus[one.part];
    for (int n = 0; taken + n * one.gpus <= problem.inventory[one.part]; ++n) {
      rates[one.role] = rate + n * one.rate_per_s;
      gpus[one.part] = taken + n * one.gpus;
      next(plan + 1);
    }
    rates[one.role] = rate;
    gpus[one.part] = taken;
  };
  next(0);
  return best;
}

TEST(SeveralPlansInARole, cost_what_trying_everything_finds) {
  Draw draw(29);
  int solved = 0, mixed = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    const CoverProblem problem = random_cover(draw);
    const std::optional<Cover> found = cheapest_cover(problem);
    const auto [cost, gpus] = cheapest_of_everything(problem);
    ASSERT_EQ(found.has_value(), std::isfinite(cost)) << trial;
    if (!found) continue;
    ++solved;
    EXPECT_EQ(found->cost_per_s, cost) << trial;
    EXPECT_EQ(found->gpus, gpus) << trial;
    // Its numbers carry the rate, cost what they are said to cost, and fit.
    std::vector<double> rates(problem.roles);
    std::vector<int> taken(problem.inventory.size()), plans(problem.roles);
    double sum = 0;
    for (std::size_t i = 0; i < problem.plans.size(); ++i) {
      const sim::CoverPlan& plan = problem.plans[i];
      rates[plan.role] += found->numbers[i] * plan.rate_per_s;
      taken[plan.part] += found->numbers[i] * plan.gpus;
      plans[plan.role] += found->numbers[i] > 0 ? 1 : 0;
      sum += found->numbers[i] * plan.gpus * problem.price_per_s[plan.part];
    }
    for (const double rate : rates) EXPECT_GE(rate, problem.rate_per_s) << trial;
    for (std::size_t part = 0; part < taken.size(); ++part) EXPECT_LE(taken[part], problem.inventory[part]) << trial;
    EXPECT_EQ(sum, cost) << trial;
    mixed += std::ranges::any_of(plans, [](int number) { return number > 1; }) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(solved, 2'000);
  EXPECT_GT(mixed, 150);
}

// Three of 4 and one of 7 carry 19; four of 4 do not, two of 7 and two of 4 cost more.
TEST(SeveralPlansInARole, are_taken_where_one_alone_wastes) {
  const CoverProblem problem{
      .plans = {{0, 0, 2, 4}, {0, 1, 4, 7}}, .roles = 1, .inventory = {8, 8}, .price_per_s = {1, 1}, .rate_per_s = 19};
  const std::optional<Cover> found = cheapest_cover(problem);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->numbers, (std::vector<int>{3, 1}));
  EXPECT_EQ(found->gpus, 10);
}

}  // namespace
}  // namespace rehearse::tests
