#include "sim/serving/tune_mixed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "sim/serving/pool_cover.hpp"
#include "sim/serving/tune_formula.hpp"

namespace rehearse::sim {
namespace {

constexpr std::array prompt_shares{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0};  // of the time to first token that lies between the sides' ends
constexpr int between_rounds = 8;

// What one instance carries, up to the load's rate, to a thousandth of it.
template <class Does>
double rate_of_one(double load_rate_per_s, Does does) {
  if (does(load_rate_per_s)) return load_rate_per_s;
  double low = 0, high = load_rate_per_s;
  while (high - low > load_rate_per_s / 1000) {
    const double middle = (low + high) / 2;
    (does(middle) ? low : high) = middle;
  }
  return low;
}

// What one instance takes at a rate, by the moments of the load: what it carries is a guess, and the formula of `predict` has the last
// word.
struct InstanceTimes {
  double ttft_s = INFINITY, tpot_s = INFINITY;
};
InstanceTimes instance_times(const TuneSides& sides, const Candidate& candidate, double rate_per_s) {
  const PoolFormula pool(candidate.deployment, sides.load);
  const Role role = candidate.pool->role;
  const PoolState state = role == Role::both      ? together(pool, sides.load, rate_per_s)
                          : role == Role::prefill ? prompts_alone(pool, sides.load, rate_per_s, 1)
                                                  : decoding_alone(pool, sides.load, rate_per_s);
  if (!std::isfinite(state.ttft_s)) return {};
  const double request_s = candidate.pool->habits.request_s;
  if (role != Role::decode) return {state.ttft_high_s + request_s, state.tpot_high_s};
  return {sides.job.transfer.prefill_answers_first ? 0 : request_s + state.queue_s + state.first_pass_s(), state.tpot_high_s};
}

// Plans of a cover and where they come from.
struct Program {
  const TuneSides& sides;
  CoverProblem problem;
  std::vector<const Candidate*> candidates;

  Program(const TuneSides& all, std::size_t roles) : sides(all) {
    problem.roles = roles;
    problem.inventory = sides.spec.inventory;
    problem.price_per_s = sides.spec.price_per_s;
    problem.rate_per_s = sides.load.rate_per_s;
  }
  void add(std::size_t role, const Candidates& plans, double ttft_within_s) {
    for (const Candidate& candidate : plans) {
      const double rate = rate_of_one(problem.rate_per_s, [&](double rate_per_s) {
        const InstanceTimes times = instance_times(sides, candidate, rate_per_s);
        return std::isfinite(times.ttft_s) && times.ttft_s <= ttft_within_s && times.tpot_s <= sides.tpot_within_s();
      });
      if (rate <= 0) continue;
      problem.plans.push_back({role, candidate.side.part, candidate.side.gpus, rate});
      candidates.push_back(&candidate);
    }
  }
  [[nodiscard]] TunedDeployment deployment(const Cover& cover, std::string kind) const {
    TunedDeployment out;
    out.cost_per_s = cover.cost_per_s;
    out.gpus = cover.gpus;
    out.kind = std::move(kind);
    for (std::size_t i = 0; i < cover.numbers.size(); ++i) {
      if (cover.numbers[i] == 0) continue;
      add_pool(out, *candidates[i], cover.numbers[i]);
      name_apart(out.pools);
    }
    return out;
  }

 private:
  // The last one by its own name, where another pool has it.
  static void name_apart(std::vector<Pool>& pools) {
    Pool& last = pools.back();
    const std::string name = last.name;
    const auto taken = [&] { return std::ranges::count(pools, last.name, &Pool::name) > 1; };
    for (int number = 2; taken(); ++number) last.name = fmt::format("{}-{}", name, number);
  }
};

std::optional<TunedDeployment> cheapest_together(const TuneSides& sides) {
  Program program(sides, 1);
  for (const Candidates& part : sides.together) program.add(0, part, sides.ttft_within_s());
  const auto cover = cheapest_cover(program.problem);
  if (!cover) return {};
  return program.deployment(*cover, "together, several plans in a role");
}

class Apart {
 public:
  explicit Apart(const TuneSides& sides) : sides_(sides), formula_(sides) {}

  // The time between the sides is the longest of those that are used, found by taking longer ones until none is longer.
  [[nodiscard]] std::optional<TunedDeployment> cheapest(double share) const {
    double between_s = 0;
    for (int round = 0; round < between_rounds; ++round) {
      const double within_s = sides_.ttft_within_s() - between_s;
      Program program(sides_, 2);
      for (const Candidates& part : sides_.prompts) program.add(0, part, share * within_s);
      for (const Candidates& part : sides_.decodes) program.add(1, part, std::isfinite(within_s) ? (1 - share) * within_s : INFINITY);
      const auto cover = cheapest_cover(program.problem);
      if (!cover) return {};
      const double longest_s = longest_between(program, *cover);
      if (longest_s <= between_s) return program.deployment(*cover, "apart, several plans in a role");
      if (!std::isfinite(longest_s)) return {};
      between_s = longest_s;
    }
    return {};
  }

 private:
  [[nodiscard]] double longest_between(const Program& program, const Cover& cover) const {
    double longest_s = 0;
    for (std::size_t p = 0; p < cover.numbers.size(); ++p) {
      for (std::size_t d = 0; d < cover.numbers.size(); ++d) {
        const CoverPlan &one = program.problem.plans[p], &other = program.problem.plans[d];
        if (cover.numbers[p] == 0 || cover.numbers[d] == 0 || one.role != 0 || other.role != 1) continue;
        const Candidate &prompts = *program.candidates[p], &decodes = *program.candidates[d];
        if (!std::isfinite(formula_.between_at_least_s(prompts, decodes))) return INFINITY;
        if (sides_.job.transfer.prefill_answers_first) continue;
        longest_s = std::max(longest_s, formula_.between(prompts, 1, decodes, 1).transfer_s);
      }
    }
    return longest_s;
  }

  const TuneSides& sides_;
  TuneFormula formula_;
};

bool has_several_in_a_role(const TunedDeployment& deployment) {
  for (std::size_t i = 1; i < deployment.pools.size(); ++i) {
    if (deployment.pools[i].role == deployment.pools[i - 1].role) return true;
  }
  return false;
}

double cheapest_of(const std::vector<TunedDeployment>& found, std::size_t pools) {  // one together, two apart
  double least = INFINITY;
  for (const TunedDeployment& one : found) {
    if (one.pools.size() == pools) least = std::min(least, one.cost_per_s);
  }
  return least;
}

}  // namespace

std::vector<TunedDeployment> mixed_deployments(const TuneSides& sides, const std::vector<TunedDeployment>& found) {
  std::vector<TunedDeployment> out;
  const TuneFormula formula(sides);
  // The cheapest of the guesses that keeps the promise.
  const auto take = [&](std::vector<TunedDeployment> guesses, double least) {
    std::ranges::stable_sort(guesses, {}, [](const TunedDeployment& one) { return std::tuple(one.cost_per_s, one.gpus); });
    for (TunedDeployment& one : guesses) {
      if (!has_several_in_a_role(one) || one.cost_per_s >= least) continue;
      const PromisedTimes times = formula.of(one);
      if (!formula.keeps(times)) continue;
      one.ttft_s = times.ttft_s;
      one.tpot_s = times.tpot_s;
      out.push_back(std::move(one));
      return;
    }
  };
  std::vector<TunedDeployment> guesses;
  if (auto one = cheapest_together(sides)) guesses.push_back(std::move(*one));
  take(std::move(guesses), cheapest_of(found, 1));
  guesses.clear();
  const Apart apart(sides);
  for (const double share : prompt_shares) {
    if (auto one = apart.cheapest(share)) guesses.push_back(std::move(*one));
    if (!std::isfinite(sides.ttft_within_s())) break;
  }
  take(std::move(guesses), cheapest_of(found, 2));
  return out;
}

}  // namespace rehearse::sim
