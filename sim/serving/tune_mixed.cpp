#include "sim/serving/tune_mixed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "sim/serving/pool_cover.hpp"

namespace rehearse::sim {
namespace {

constexpr std::array prompt_shares{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0};  // of the time to first token that lies between the sides' ends
constexpr int between_rounds = 8;

bool has_several_in_a_role(const TunedDeployment& deployment) {
  for (std::size_t i = 1; i < deployment.pools.size(); ++i) {
    if (deployment.pools[i].role == deployment.pools[i - 1].role) return true;
  }
  return false;
}

std::size_t roles_of(const TunedDeployment& deployment) { return deployment.pools.front().role == Role::both ? 1 : 2; }

}  // namespace

// What one instance takes at a rate, by the moments of the load: what it carries is a guess, and the formula of `predict` has the last
// word. In steps of the job's rate, each asked about once.
const MixedDeployments::Times& MixedDeployments::instance_times(const PoolCandidate& candidate, int step) {
  const auto [at, fresh] = known_.try_emplace({&candidate, step});
  if (!fresh) return at->second;
  const double rate_per_s = step * step_per_s_;
  const PoolFormula pool(candidate.deployment, sides_.load);
  const Role role = candidate.pool->role;
  const PoolState state = role == Role::both      ? together(pool, sides_.load, rate_per_s)
                          : role == Role::prefill ? prompts_alone(pool, sides_.load, rate_per_s, 1)
                                                  : decoding_alone(pool, sides_.load, rate_per_s);
  if (!std::isfinite(state.ttft_s)) return at->second;
  const double request_s = candidate.pool->habits.request_s;
  at->second = {state.ttft_high_s + request_s, state.tpot_high_s};
  if (role == Role::decode)
    at->second.ttft_s = sides_.job.transfer.prefill_answers_first ? 0 : request_s + state.queue_s + state.first_pass_s();
  return at->second;
}

// Within the promise at so many steps of the job's rate.
bool MixedDeployments::carries(const PoolCandidate& candidate, int step, double ttft_within_s) {
  const Times& times = instance_times(candidate, step);
  return std::isfinite(times.ttft_s) && times.ttft_s <= ttft_within_s && times.tpot_s <= sides_.tpot_within_s();
}

int MixedDeployments::steps_of_load() const { return static_cast<int>(std::ceil(sides_.load.rate_per_s / step_per_s_ * (1 - 1e-12))); }

// Of plans whose instances take as many GPUs of a part that which carries the most, the first of these: others are in no cheapest cover.
// One that does not carry a step more than the best so far is asked about once.
std::vector<MixedDeployments::Carrier> MixedDeployments::carriers(const Candidates& plans, double ttft_within_s) {
  const int most = steps_of_load();
  std::map<int, Carrier> best;  // by GPUs of an instance
  for (const PoolCandidate& candidate : plans) {
    Carrier& so_far = best[candidate.side.gpus];
    if (so_far.steps >= most || !carries(candidate, so_far.steps + 1, ttft_within_s)) continue;
    const int least = least_number(most, [&](int step) { return !carries(candidate, step, ttft_within_s); });
    so_far = {&candidate, least == no_number ? most : least - 1};
  }
  std::vector<Carrier> out;
  for (const auto& [gpus, carrier] : best) {
    if (carrier.steps > 0) out.push_back(carrier);
  }
  std::ranges::sort(out, {}, &Carrier::plan);  // in the order of the plans
  return out;
}

// Plans of a cover and where they come from.
struct MixedDeployments::Program {
  MixedDeployments& all;
  CoverProblem problem;
  std::vector<const PoolCandidate*> candidates;

  Program(MixedDeployments& of, std::size_t roles) : all(of) {
    const TuneSides& sides = of.sides_;
    problem.roles = roles;
    problem.inventory = sides.spec.inventory;
    problem.price_per_s = sides.spec.price_per_s;
    if (of.counts_gpus_) problem.price_per_s.assign(problem.price_per_s.size(), 1);
    problem.rate_per_s = sides.load.rate_per_s;
  }
  void add(std::size_t role, const Candidates& plans, double ttft_within_s) {
    for (const Carrier& carrier : all.carriers(plans, ttft_within_s)) {
      const SidePlan& side = carrier.plan->side;
      const double rate = carrier.steps == all.steps_of_load() ? all.sides_.load.rate_per_s : carrier.steps * all.step_per_s_;
      problem.plans.push_back({role, side.part, side.gpus, rate});
      candidates.push_back(carrier.plan);
    }
  }
  [[nodiscard]] Choice choice(const Cover& cover) const {
    Choice out;
    for (std::size_t i = 0; i < cover.numbers.size(); ++i) {
      if (cover.numbers[i] > 0) out.push_back({candidates[i], cover.numbers[i]});
    }
    return out;
  }
};

TunedDeployment MixedDeployments::deployment_of(const Choice& choice) const {
  TunedDeployment out;
  bool divided = false;
  for (const PlanInstances& one : choice) {
    add_pool(out, *one.plan, one.number);
    out.cost_per_s += one.number * one.plan->side.cost;
    out.gpus += one.number * one.plan->side.gpus;
    out.pools.back().longest_prompt = one.longest_prompt;
    divided = divided || one.longest_prompt > 0;
    // By its own name, where another pool has it.
    Pool& last = out.pools.back();
    const std::string name = last.name;
    const auto taken = [&] { return std::ranges::count(out.pools, last.name, &Pool::name) > 1; };
    for (int again = 2; taken(); ++again) last.name = fmt::format("{}-{}", name, again);
  }
  out.mixed = true;
  out.kind = fmt::format("{}, {}", roles_of(out) == 1 ? "together" : "apart", divided ? "prompts by length" : "several plans in a role");
  return out;
}

void MixedDeployments::guess_together() {
  Program program(*this, 1);
  for (const Candidates& part : sides_.together) program.add(0, part, sides_.ttft_within_s());
  if (const auto cover = cheapest_cover(program.problem)) guesses_.push_back(program.choice(*cover));
}

std::optional<MixedDeployments::Choice> MixedDeployments::covered_apart(double share, double between_s) {
  const double within_s = sides_.ttft_within_s() - between_s;
  Program program(*this, 2);
  for (const Candidates& part : sides_.prompts) program.add(0, part, share * within_s);
  for (const Candidates& part : sides_.decodes) program.add(1, part, std::isfinite(within_s) ? (1 - share) * within_s : INFINITY);
  const auto cover = cheapest_cover(program.problem);
  return cover ? std::optional(program.choice(*cover)) : std::nullopt;
}

// The time between the sides is the longest of those that are used, found by taking longer ones until none is longer.
void MixedDeployments::guess_apart(const ChoiceApart& choice_of) {
  for (const double share : prompt_shares) {
    double between_s = 0;
    for (int round = 0; round < between_rounds; ++round) {
      auto choice = choice_of(share, between_s);
      if (!choice) break;
      const double longest_s = longest_between_s(*choice);
      if (longest_s <= between_s) guesses_.push_back(std::move(*choice));
      if (longest_s <= between_s || !std::isfinite(longest_s)) break;
      between_s = longest_s;
    }
    if (!std::isfinite(sides_.ttft_within_s())) break;
  }
}

double MixedDeployments::longest_between_s(const Choice& choice) const {
  double longest_s = 0;
  for (const PlanInstances& prompts : choice) {
    for (const PlanInstances& decodes : choice) {
      if (prompts.plan->pool->role != Role::prefill || decodes.plan->pool->role != Role::decode) continue;
      if (!std::isfinite(formula_.between_at_least_s(*prompts.plan, *decodes.plan))) return INFINITY;
      if (sides_.job.transfer.prefill_answers_first) continue;
      longest_s = std::max(longest_s, formula_.between(*prompts.plan, 1, *decodes.plan, 1).transfer_s);
    }
  }
  return longest_s;
}

// Whether they keep the promise by the formula of `predict`; several of a plan carry more than each alone.
bool MixedDeployments::keeps(const Choice& choice) const { return formula_.keeps(formula_.of(deployment_of(choice))); }

// Instances that can be spared go, those that save the most first, until none can. Who takes the longest prompts stays: somebody must.
void MixedDeployments::spare(Choice& choice) const {
  std::vector<std::size_t> order(choice.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return measure(choice[i].plan->side.cost, choice[i].plan->side.gpus); });
  for (const std::size_t i : order) {
    while (choice[i].number > 0) {
      --choice[i].number;
      Choice fewer;
      std::ranges::copy_if(choice, std::back_inserter(fewer), [](const PlanInstances& one) { return one.number > 0; });
      if (has_both_ends(fewer) && takes_all_lengths(fewer) && keeps(fewer)) continue;
      ++choice[i].number;
      break;
    }
  }
  std::erase_if(choice, [](const PlanInstances& one) { return one.number == 0; });
}

bool MixedDeployments::takes_all_lengths(const Choice& choice) {
  return std::ranges::all_of(choice, [&](const PlanInstances& one) {
    return std::ranges::any_of(
        choice, [&](const PlanInstances& other) { return other.plan->pool->role == one.plan->pool->role && other.longest_prompt == 0; });
  });
}

bool MixedDeployments::has_both_ends(const Choice& choice) {
  const auto has = [&](Role role) {
    return std::ranges::any_of(choice, [&](const PlanInstances& one) { return one.plan->pool->role == role; });
  };
  return has(Role::both) || (has(Role::prefill) && has(Role::decode));
}

// The cheapest of the guesses that keeps the promise, without the instances that can be spared, or as it was guessed.
std::optional<TunedDeployment> MixedDeployments::best_of_guesses(double below, bool spared) {
  std::optional<TunedDeployment> best;
  for (Choice& guess : guesses_) {
    if (!keeps(guess)) continue;
    if (spared) spare(guess);
    TunedDeployment one = deployment_of(guess);
    const double measured = measure(one.cost_per_s, one.gpus);
    if (!has_several_in_a_role(one) || measured >= below) continue;
    const PromisedTimes times = formula_.of(one);
    one.ttft_s = times.ttft_s;
    one.tpot_s = times.tpot_s;
    below = measured;
    best = std::move(one);
  }
  guesses_.clear();
  return best;
}

double MixedDeployments::least_of(const std::vector<TunedDeployment>& found, std::size_t roles) const {
  double least = INFINITY;
  for (const TunedDeployment& one : found) {
    if (roles_of(one) == roles) least = std::min(least, measure(one.cost_per_s, one.gpus));
  }
  return least;
}

std::vector<TunedDeployment> MixedDeployments::cheaper_than(const std::vector<TunedDeployment>& found) {
  std::vector<TunedDeployment> out;
  guess_together();
  if (auto one = best_of_guesses(least_of(found, 1))) out.push_back(std::move(*one));
  guess_apart([this](double share, double between_s) { return covered_apart(share, between_s); });
  if (auto one = best_of_guesses(least_of(found, 2))) out.push_back(std::move(*one));
  if (sides_.spec.divides()) add_divided(found, out);
  return out;
}

// Where each length keeps the promise by itself, none need do so for others: that stands there too, for when the simulation wants it.
void MixedDeployments::add_divided(const std::vector<TunedDeployment>& found, std::vector<TunedDeployment>& out) {
  LengthDivisions divisions(sides_, counts_gpus_);
  const double together = std::min(least_of(found, 1), least_of(out, 1)), apart = std::min(least_of(found, 2), least_of(out, 2));
  const auto add_best = [&](double below) {
    std::vector<Choice> guesses = guesses_;
    auto whole = best_of_guesses(below, false);
    guesses_ = std::move(guesses);
    auto one = best_of_guesses(below);
    const bool differs = whole && !(one && one->gpus == whole->gpus);
    if (one) out.push_back(std::move(*one));
    if (differs) out.push_back(std::move(*whole));
  };
  guesses_ = divisions.together();
  add_best(together);
  guess_apart([&](double share, double between_s) { return divisions.apart(share, between_s); });
  add_best(apart);
}

}  // namespace rehearse::sim
