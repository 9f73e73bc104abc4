#include "sim/serving/tune_front.hpp"

#include <algorithm>
#include <cmath>

#include "sim/serving/deployment_front.hpp"
#include "sim/serving/tune_formula.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

// A plan among those of all parts.
struct Place {
  std::size_t part = 0, plan = 0;
};

std::vector<Place> places_of(const std::vector<Candidates>& by_part) {
  std::vector<Place> places;
  for (std::size_t part = 0; part < by_part.size(); ++part) {
    for (std::size_t plan = 0; plan < by_part[part].size(); ++plan) places.push_back({part, plan});
  }
  return places;
}

std::vector<FrontGoal> goals_of(const ServingTuneSpec& spec) {
  std::vector<FrontGoal> goals;
  for (const ServingGoal goal : spec.goals) goals.push_back(static_cast<FrontGoal>(goal));
  if (goals.size() == 1 && goals.front() != FrontGoal::cost) goals.push_back(FrontGoal::cost);
  return goals;
}

class Fronts {
 public:
  Fronts(const TuneSides& sides, const std::function<void(double)>& progress)
      : sides_(sides),
        progress_(progress),
        together_(places_of(sides.together)),
        prompts_(places_of(sides.prompts)),
        decodes_(places_of(sides.decodes)),
        front_(goals_of(sides.spec)),
        formula_(sides) {}

  std::vector<TunedDeployment> run() {
    add_together();
    FrontProblem problem;
    for (const Place& place : prompts_) {
      problem.prompts.push_back(prompt_side(place));
      done(1, problem.prompts.size(), prompts_.size());
    }
    for (const Place& place : decodes_) {
      problem.decodes.push_back(decode_side(place));
      done(2, problem.decodes.size(), decodes_.size());
    }
    problem.progress = [this](std::size_t plans) { done(3, plans, decodes_.size()); };
    problem.inventory = sides_.spec.inventory;
    problem.within_s = sides_.ttft_within_s();
    problem.per_token_s = sides_.tpot_within_s();
    problem.between_s = [this](std::size_t prompt, std::size_t decode) {
      return formula_.between_at_least_s(prompts_of(prompt), decodes_of(decode));
    };
    problem.times = [this](std::size_t prompt, int prompters, std::size_t decode, int decoders) {
      const PoolCandidate &one = prompts_of(prompt), &other = decodes_of(decode);
      if (!formula_.holds(one, prompters, other, decoders)) return FrontTimes{INFINITY, INFINITY};
      const PromisedTimes times = formula_.apart(one, prompters, other, decoders);
      return FrontTimes{times.ttft_s, times.tpot_s};
    };
    sim::add_pairs(problem, front_);
    std::vector<TunedDeployment> all;
    for (const FrontPoint& point : front_.sorted()) all.push_back(deployment_of(point));
    return all;
  }

 private:
  [[nodiscard]] const PoolCandidate& prompts_of(std::size_t at) const { return sides_.prompts[prompts_[at].part][prompts_[at].plan]; }
  [[nodiscard]] const PoolCandidate& decodes_of(std::size_t at) const { return sides_.decodes[decodes_[at].part][decodes_[at].plan]; }

  // Where what they take at least is reached already, the formula is not asked.
  void add_together() {
    for (std::size_t i = 0; i < together_.size(); ++i) {
      const PoolCandidate& candidate = sides_.together[together_[i].part][together_[i].plan];
      done(0, i, together_.size());
      for (int n = 1; n <= sides_.most(candidate); ++n) {
        const auto values_of = [&](const PromisedTimes& times) {
          return FrontValues{n * candidate.side.cost, static_cast<double>(n * candidate.side.gpus), times.ttft_s, times.tpot_s};
        };
        const PromisedTimes least = formula_.together_at_least(candidate, n);
        if (!formula_.keeps(least) || front_.reaches(values_of(least))) continue;
        const PromisedTimes times = formula_.together(candidate, n);
        if (formula_.keeps(times)) front_.add({values_of(times), i, nowhere, n, 0});
      }
    }
  }

  [[nodiscard]] FrontSide prompt_side(const Place& place) const {
    const PoolCandidate& candidate = sides_.prompts[place.part][place.plan];
    FrontSide side{candidate.side, {}};
    for (int n = 1; n <= sides_.most(candidate); ++n) side.states.push_back({formula_.prompts_take_s(candidate, n), 0});
    return side;
  }
  [[nodiscard]] FrontSide decode_side(const Place& place) const {
    const PoolCandidate& candidate = sides_.decodes[place.part][place.plan];
    FrontSide side{candidate.side, {}};
    for (int n = 1; n <= sides_.most(candidate); ++n) {
      const PromisedTimes times = formula_.decodes_take(candidate, n);
      side.states.push_back({times.ttft_s, times.tpot_s});
    }
    return side;
  }

  [[nodiscard]] TunedDeployment deployment_of(const FrontPoint& point) const {
    TunedDeployment out;
    const auto value = [&](FrontGoal goal) { return point.values[static_cast<std::size_t>(goal)]; };
    out.cost_per_s = value(FrontGoal::cost);
    out.gpus = static_cast<int>(value(FrontGoal::gpus));
    out.ttft_s = value(FrontGoal::ttft);
    out.tpot_s = value(FrontGoal::tpot);
    if (point.decodes == nowhere) {
      const Place& place = together_[point.prompts];
      out.kind = sides_.kind_of(place.part);
      add_pool(out, sides_.together[place.part][place.plan], point.prompters);
      return out;
    }
    const Place &one = prompts_[point.prompts], &other = decodes_[point.decodes];
    out.kind = sides_.kind_of(one.part, other.part);
    add_pool(out, sides_.prompts[one.part][one.plan], point.prompters);
    add_pool(out, sides_.decodes[other.part][other.plan], point.decoders);
    return out;
  }

  // A quarter each: instances of both, of prompts, of decoding, and their pairs.
  void done(int quarters, std::size_t at, std::size_t all) const { progress_((quarters + static_cast<double>(at) / all) / 4); }

  const TuneSides& sides_;
  const std::function<void(double)>& progress_;
  std::vector<Place> together_, prompts_, decodes_;
  DeploymentFront front_;
  TuneFormula formula_;
};

}  // namespace

std::vector<TunedDeployment> deployment_front(const TuneSides& sides, const std::function<void(double)>& progress) {
  return Fronts(sides, progress).run();
}

bool add_to_front(const TuneSides& sides, const TunedDeployment& deployment, std::vector<TunedDeployment>& front) {
  const FrontOrder order{goals_of(sides.spec)};
  const auto values_of = [](const TunedDeployment& one) {
    return FrontValues{one.cost_per_s, static_cast<double>(one.gpus), one.ttft_s, one.tpot_s};
  };
  const FrontValues values = values_of(deployment);
  if (std::ranges::any_of(front, [&](const TunedDeployment& one) { return order.no_worse(values_of(one), values); })) return false;
  std::erase_if(front, [&](const TunedDeployment& one) { return order.no_worse(values, values_of(one)); });
  front.insert(std::ranges::find_if(front, [&](const TunedDeployment& one) { return order.before(values, values_of(one)); }), deployment);
  return true;
}

}  // namespace rehearse::sim
