// All deployments of two sides that no other beats in every goal, exactly (docs/serving.md, "Tuning").
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "sim/serving/pair_search.hpp"

namespace rehearse::sim {

// What deployments are judged by; all are to be small.
enum class FrontGoal : std::size_t { cost, gpus, ttft, tpot };
using FrontValues = std::array<double, 4>;  // by goal

struct FrontPoint {
  FrontValues values{};
  std::size_t prompts = 0, decodes = 0;  // plans; of one pool of both roles the first alone
  int prompters = 0, decoders = 0;
};

// By these goals, the first one first.
struct FrontOrder {
  std::vector<FrontGoal> goals;

  [[nodiscard]] bool no_worse(const FrontValues& one, const FrontValues& other) const;  // in every goal
  [[nodiscard]] bool before(const FrontValues& one, const FrontValues& other) const;
};

class DeploymentFront {
 public:
  explicit DeploymentFront(std::vector<FrontGoal> goals) : order_{std::move(goals)} {}
  // Whether a point of it is no worse in every goal than these.
  [[nodiscard]] bool reaches(const FrontValues& values) const;
  // Of points alike in all goals the first one stays.
  void add(const FrontPoint& point);
  // By the first goal from the best on, then by the others.
  [[nodiscard]] std::vector<FrontPoint> sorted() const;

 private:
  FrontOrder order_;
  std::vector<FrontPoint> points_;
};

// A plan with so many instances, from one up to what the inventory holds: what they take of the time to first token, and the time per
// token, at least; infinite: so many do not do.
struct FrontTimes {
  double ttft_s = 0, tpot_s = 0;
};
struct FrontSide {
  SidePlan plan;
  using State = FrontTimes;
  std::vector<State> states;  // [number - 1]; both fall with the number
};

struct FrontProblem {
  std::vector<FrontSide> prompts, decodes;
  std::vector<int> inventory;                                                         // GPUs by part
  double within_s = 0, per_token_s = 0;                                               // what is promised; infinite: nothing
  std::function<double(std::size_t prompt_plan, std::size_t decode_plan)> between_s;  // at least; infinite: they cannot be paired
  // So many of both, which take no less than the above say.
  std::function<FrontTimes(std::size_t prompt_plan, int prompters, std::size_t decode_plan, int decoders)> times;
  std::function<void(std::size_t decode_plans)> progress = [](std::size_t) {};  // so many are done
};

// Adds every pair with every number of both that keeps the promise; pairs whose best values are reached already are left out.
void add_pairs(const FrontProblem& problem, DeploymentFront& front);

}  // namespace rehearse::sim
