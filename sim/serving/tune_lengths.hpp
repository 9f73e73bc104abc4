// Deployments in which plans of a role take prompts of different lengths (docs/serving.md, "Tuning").
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/serving/length_split.hpp"
#include "sim/serving/tune_formula.hpp"

namespace rehearse::sim {

// Instances of a plan, and the longest prompts that they take (0: all that are longer than others').
struct PlanInstances {
  const PoolCandidate* plan = nullptr;
  int number = 0;
  int longest_prompt = 0;
};
using PlanChoice = std::vector<PlanInstances>;

// The lengths at which prompts may be divided, rising: those of the job, or so that all between two hold as many tokens of prompts.
[[nodiscard]] std::vector<int> lengths_to_divide_at(const ServingTuneSpec& spec, const LoadMoments& load);
// Why lengths that the job gives divide nothing, for its reader; empty: they may.
[[nodiscard]] std::string why_undivided(const ServingTuneSpec& spec, const LoadMoments& load);

// Every range of lengths between two of these is a load of its own that keeps the promise by itself: of those the cheapest divisions, at
// the rate that the sides have now.
class LengthDivisions {
 public:
  // They must outlive it. By GPUs, or by cost.
  LengthDivisions(const TuneSides& sides, bool counts_gpus);

  [[nodiscard]] std::vector<PlanChoice> together();
  // Of the time to first token the prompts' side has a share of what is left beside so many seconds between the sides.
  [[nodiscard]] std::optional<PlanChoice> apart(double share, double between_s);

 private:
  using Does = bool (*)(const TuneFormula& formula, const PoolCandidate& plan, int number, double within_s);
  struct Role {
    std::vector<const PoolCandidate*> plans;
    std::vector<Split> splits;
  };
  [[nodiscard]] Role divided(const std::vector<Candidates>& by_part, Does does, double within_s);
  [[nodiscard]] const TuneFormula& formula_of(std::size_t from, std::size_t to);
  void add(const Role& role, const Split& split, PlanChoice& to) const;

  const TuneSides& sides_;
  bool counts_gpus_;
  std::vector<int> bounds_;  // of all buckets but the last
  std::map<std::pair<std::size_t, std::size_t>, LoadMoments> loads_;
  std::map<std::pair<std::size_t, std::size_t>, TuneFormula> formulas_;
};

}  // namespace rehearse::sim
