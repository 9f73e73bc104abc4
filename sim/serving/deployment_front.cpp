#include "sim/serving/deployment_front.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

// Of one pair of plans.
class PairOfSides {
 public:
  PairOfSides(const FrontProblem& problem, std::size_t prompt_plan, std::size_t decode_plan)
      : problem_(problem),
        prompt_plan_(prompt_plan),
        decode_plan_(decode_plan),
        p_(problem.prompts[prompt_plan]),
        d_(problem.decodes[decode_plan]),
        between_s_(problem.between_s(prompt_plan, decode_plan)) {}

  void add_to(DeploymentFront& front) const {
    if (p_.states.empty() || d_.states.empty() || !(between_s_ < problem_.within_s)) return;
    if (front.reaches(values(1, 1, p_.states.back(), d_.states.back()))) return;
    for (int decoders = 1; decoders <= static_cast<int>(d_.states.size()); ++decoders) {
      const FrontSide::State& decode = d_.states[static_cast<std::size_t>(decoders) - 1];
      if (!(decode.tpot_s <= problem_.per_token_s)) continue;
      if (front.reaches(values(1, decoders, p_.states.back(), decode))) continue;
      add_prompters(decoders, decode, front);
    }
  }

 private:
  void add_prompters(int decoders, const FrontSide::State& decode, DeploymentFront& front) const {
    const bool shared = p_.plan.part == d_.plan.part;
    const int left = problem_.inventory[p_.plan.part] - (shared ? decoders * d_.plan.gpus : 0);
    for (int prompters = 1; prompters <= static_cast<int>(p_.states.size()) && prompters * p_.plan.gpus <= left; ++prompters) {
      FrontValues all = values(prompters, decoders, p_.states[static_cast<std::size_t>(prompters) - 1], decode);
      double &ttft_s = all[static_cast<std::size_t>(FrontGoal::ttft)], &tpot_s = all[static_cast<std::size_t>(FrontGoal::tpot)];
      if (!std::isfinite(ttft_s) || ttft_s > problem_.within_s || front.reaches(all)) continue;
      const FrontTimes times = problem_.times(prompt_plan_, prompters, decode_plan_, decoders);
      ttft_s = times.ttft_s;
      tpot_s = times.tpot_s;
      if (std::isfinite(ttft_s) && ttft_s <= problem_.within_s && tpot_s <= problem_.per_token_s)
        front.add({all, prompt_plan_, decode_plan_, prompters, decoders});
    }
  }

  [[nodiscard]] FrontValues values(int prompters, int decoders, const FrontSide::State& prompt, const FrontSide::State& decode) const {
    return {prompters * p_.plan.cost + decoders * d_.plan.cost, static_cast<double>(prompters * p_.plan.gpus + decoders * d_.plan.gpus),
            prompt.ttft_s + between_s_ + decode.ttft_s, decode.tpot_s};
  }

  const FrontProblem& problem_;
  std::size_t prompt_plan_, decode_plan_;
  const FrontSide &p_, &d_;
  double between_s_;
};

}  // namespace

bool FrontOrder::no_worse(const FrontValues& one, const FrontValues& other) const {
  return std::ranges::all_of(goals, [&](FrontGoal goal) {
    const auto at = static_cast<std::size_t>(goal);
    return one[at] <= other[at];
  });
}

bool FrontOrder::before(const FrontValues& one, const FrontValues& other) const {
  for (const FrontGoal goal : goals) {
    const auto at = static_cast<std::size_t>(goal);
    if (one[at] != other[at]) return one[at] < other[at];
  }
  return false;
}

bool DeploymentFront::reaches(const FrontValues& values) const {
  return std::ranges::any_of(points_, [&](const FrontPoint& point) { return order_.no_worse(point.values, values); });
}

void DeploymentFront::add(const FrontPoint& point) {
  if (reaches(point.values)) return;
  std::erase_if(points_, [&](const FrontPoint& other) { return order_.no_worse(point.values, other.values); });
  points_.push_back(point);
}

std::vector<FrontPoint> DeploymentFront::sorted() const {
  std::vector<FrontPoint> sorted = points_;
  std::ranges::stable_sort(sorted, [&](const FrontPoint& one, const FrontPoint& other) { return order_.before(one.values, other.values); });
  return sorted;
}

void add_pairs(const FrontProblem& problem, DeploymentFront& front) {
  for (std::size_t decode = 0; decode < problem.decodes.size(); ++decode) {
    for (std::size_t prompt = 0; prompt < problem.prompts.size(); ++prompt) PairOfSides(problem, prompt, decode).add_to(front);
    problem.progress(decode + 1);
  }
}

}  // namespace rehearse::sim
