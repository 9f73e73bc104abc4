// Several plans, or kinds of GPUs, in one role (docs/serving.md, "Tuning").
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/serving/tune_formula.hpp"
#include "sim/serving/tune_lengths.hpp"

namespace rehearse::sim {

// An integer program guesses: every instance carries what it carries alone within the promise, by the moments of the load; apart the time
// to first token is divided between the sides, at some shares. Of each guess that keeps the promise by the formula of `predict` those
// instances go that can be spared by it.
class MixedDeployments {
 public:
  // They must outlive it; their rate may change, and guesses are in thousandths of the one they have now. By GPUs, or by cost.
  MixedDeployments(const TuneSides& sides, bool counts_gpus)
      : sides_(sides), formula_(sides), counts_gpus_(counts_gpus), step_per_s_(sides.load.rate_per_s / 1000) {}

  // The cheapest deployment together, and the cheapest apart, where it has several plans in a role and costs less than the cheapest of
  // `found`, of the same sort; at the rate of the sides. With lengths to divide at also the cheapest two in which plans take prompts of
  // different lengths.
  [[nodiscard]] std::vector<TunedDeployment> cheaper_than(const std::vector<TunedDeployment>& found);

 private:
  struct Times {
    double ttft_s = std::numeric_limits<double>::infinity(), tpot_s = std::numeric_limits<double>::infinity();
  };
  struct Program;
  using Choice = PlanChoice;

  [[nodiscard]] const Times& instance_times(const PoolCandidate& candidate, int step);
  // A plan, and the most steps of the rate that one instance carries within the promise, up to the load's.
  struct Carrier {
    const PoolCandidate* plan = nullptr;
    int steps = 0;
  };
  [[nodiscard]] bool carries(const PoolCandidate& candidate, int step, double ttft_within_s);
  [[nodiscard]] int steps_of_load() const;
  [[nodiscard]] std::vector<Carrier> carriers(const Candidates& plans, double ttft_within_s);
  void guess_together();
  // Of a share of the time to first token for the prompts' side, and so many seconds between the sides.
  using ChoiceApart = std::function<std::optional<Choice>(double share, double between_s)>;
  [[nodiscard]] std::optional<Choice> covered_apart(double share, double between_s);
  void guess_apart(const ChoiceApart& choice_of);
  void add_divided(const std::vector<TunedDeployment>& found, std::vector<TunedDeployment>& out);
  [[nodiscard]] double longest_between_s(const Choice& choice) const;
  [[nodiscard]] TunedDeployment deployment_of(const Choice& choice) const;
  [[nodiscard]] bool keeps(const Choice& choice) const;
  void spare(Choice& choice) const;
  [[nodiscard]] static bool has_both_ends(const Choice& choice);
  [[nodiscard]] static bool takes_all_lengths(const Choice& choice);
  [[nodiscard]] std::optional<TunedDeployment> best_of_guesses(double below, bool spared = true);
  [[nodiscard]] double least_of(const std::vector<TunedDeployment>& found, std::size_t roles) const;
  [[nodiscard]] double measure(double cost_per_s, int gpus) const { return counts_gpus_ ? gpus : cost_per_s; }

  const TuneSides& sides_;
  TuneFormula formula_;
  bool counts_gpus_;
  double step_per_s_;
  std::map<std::pair<const PoolCandidate*, int>, Times> known_;
  std::vector<Choice> guesses_;
};

}  // namespace rehearse::sim
