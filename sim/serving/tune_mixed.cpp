#include "sim/serving/tune_mixed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/serving/pool_cover.hpp"

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

// Plans of a cover and where they come from.
struct Program {
  CoverProblem problem;
  std::vector<const Candidate*> candidates;
  std::vector<std::size_t> places;  // in their part

  Program(const TuneSides& sides, std::size_t roles) {
    problem.roles = roles;
    problem.inventory = sides.spec.inventory;
    problem.price_per_s = sides.spec.price_per_s;
    problem.rate_per_s = sides.load.rate_per_s;
  }
  void add(std::size_t role, const Candidate& candidate, std::size_t place, double rate_per_s) {
    if (rate_per_s <= 0) return;
    problem.plans.push_back({role, candidate.side.part, candidate.side.gpus, rate_per_s});
    candidates.push_back(&candidate);
    places.push_back(place);
  }
  // Of the rate that comes to a role every instance has the share that it has of what all of the role carry.
  template <class Times>
  [[nodiscard]] TunedDeployment deployment(const Cover& cover, std::string kind, Times times) const {
    TunedDeployment out;
    out.cost_per_s = cover.cost_per_s;
    out.gpus = cover.gpus;
    out.kind = std::move(kind);
    std::array<double, 2> carried_per_s{}, ttft_s{};
    for (std::size_t i = 0; i < cover.numbers.size(); ++i)
      carried_per_s[problem.plans[i].role] += cover.numbers[i] * problem.plans[i].rate_per_s;
    for (std::size_t i = 0; i < cover.numbers.size(); ++i) {
      if (cover.numbers[i] == 0) continue;
      const CoverPlan& plan = problem.plans[i];
      const SideTimes each = times(plan.role, i, plan.rate_per_s * std::min(1.0, problem.rate_per_s / carried_per_s[plan.role]));
      ttft_s[plan.role] = std::max(ttft_s[plan.role], each.ttft_s);
      out.tpot_s = std::max(out.tpot_s, each.tpot_s);
      out.pools.push_back(with_number(*candidates[i], cover.numbers[i]));
      name_apart(out.pools);
    }
    out.ttft_s = ttft_s[0] + ttft_s[1];
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
  for (const Candidates& part : sides.together) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      program.add(0, part[i], i, rate_of_one(sides.load.rate_per_s, [&](double rate) {
                    const SideTimes times = together_times(sides, part[i], rate);
                    return std::isfinite(times.ttft_s) && times.ttft_s <= sides.ttft_within_s() && times.tpot_s <= sides.tpot_within_s();
                  }));
    }
  }
  const auto cover = cheapest_cover(program.problem);
  if (!cover) return {};
  return program.deployment(*cover, "together, several plans in a role",
                            [&](std::size_t, std::size_t i, double rate) { return together_times(sides, *program.candidates[i], rate); });
}

class Apart {
 public:
  explicit Apart(const TuneSides& sides) : sides_(sides) {
    for (const Candidates& prompts : sides.prompts) {
      for (const Candidates& decodes : sides.decodes) models_.emplace_back(sides, prompts, decodes);
    }
  }

  // The time between the sides is the longest of those that are used, found by taking longer ones until none is longer.
  [[nodiscard]] std::optional<TunedDeployment> cheapest(double share) const {
    double between_s = 0;
    for (int round = 0; round < between_rounds; ++round) {
      const Program program = program_of(share, between_s);
      const auto cover = cheapest_cover(program.problem);
      if (!cover) return {};
      const double longest_s = longest_between(program, *cover);
      if (longest_s <= between_s) {
        TunedDeployment out =
            program.deployment(*cover, "apart, several plans in a role", [&](std::size_t role, std::size_t i, double rate) {
              const std::size_t part = program.problem.plans[i].part, place = program.places[i];
              if (role == 0) return SideTimes{model(part, 0).prompts_take_s(place, rate, 1), 0};
              return model(0, part).decode_times(place, rate);
            });
        out.ttft_s += longest_s;
        return out;
      }
      if (!std::isfinite(longest_s)) return {};
      between_s = longest_s;
    }
    return {};
  }

 private:
  [[nodiscard]] const FormulaPairs& model(std::size_t prompt_part, std::size_t decode_part) const {
    return models_[prompt_part * sides_.decodes.size() + decode_part];
  }

  [[nodiscard]] Program program_of(double share, double between_s) const {
    Program program(sides_, 2);
    const double within_s = sides_.ttft_within_s() - between_s, load_rate = sides_.load.rate_per_s;
    const double prompts_within_s = share * within_s, decodes_within_s = std::isfinite(within_s) ? (1 - share) * within_s : INFINITY;
    for (std::size_t part = 0; part < sides_.prompts.size(); ++part) {
      for (std::size_t i = 0; i < sides_.prompts[part].size(); ++i) {
        program.add(0, sides_.prompts[part][i], i, rate_of_one(load_rate, [&](double rate) {
                      const double takes_s = model(part, 0).prompts_take_s(i, rate, 1);
                      return std::isfinite(takes_s) && takes_s <= prompts_within_s;
                    }));
      }
      for (std::size_t i = 0; i < sides_.decodes[part].size(); ++i) {
        program.add(1, sides_.decodes[part][i], i, rate_of_one(load_rate, [&](double rate) {
                      const SideTimes times = model(0, part).decode_times(i, rate);
                      return std::isfinite(times.ttft_s) && times.ttft_s <= decodes_within_s && times.tpot_s <= sides_.tpot_within_s();
                    }));
      }
    }
    return program;
  }

  [[nodiscard]] double longest_between(const Program& program, const Cover& cover) const {
    double longest_s = 0;
    for (std::size_t p = 0; p < cover.numbers.size(); ++p) {
      for (std::size_t d = 0; d < cover.numbers.size(); ++d) {
        const CoverPlan &one = program.problem.plans[p], &other = program.problem.plans[d];
        if (cover.numbers[p] == 0 || cover.numbers[d] == 0 || one.role != 0 || other.role != 1) continue;
        longest_s = std::max(longest_s, model(one.part, other.part).between_s(program.places[p], program.places[d]));
      }
    }
    return longest_s;
  }

  const TuneSides& sides_;
  std::vector<FormulaPairs> models_;  // [prompts' part][decodes' part]
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
  const auto take = [&](std::optional<TunedDeployment> one, double least) {
    if (one && has_several_in_a_role(*one) && one->cost_per_s < least) out.push_back(std::move(*one));
  };
  take(cheapest_together(sides), cheapest_of(found, 1));
  std::optional<TunedDeployment> best;
  const Apart apart(sides);
  for (const double share : prompt_shares) {
    auto one = apart.cheapest(share);
    if (one && (!best || one->cost_per_s < best->cost_per_s)) best = std::move(one);
    if (!std::isfinite(sides.ttft_within_s())) break;
  }
  take(std::move(best), cheapest_of(found, 2));
  return out;
}

}  // namespace rehearse::sim
