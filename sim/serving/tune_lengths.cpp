#include "sim/serving/tune_lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace rehearse::sim {
namespace {

constexpr int usual_buckets = 8;
constexpr std::size_t most_guesses = 4;  // of the cheapest divisions

bool together_keeps(const TuneFormula& formula, const PoolCandidate& plan, int number, double) {
  return formula.keeps(formula.together_at_least(plan, number)) && formula.keeps(formula.together(plan, number));
}
bool prompts_keep(const TuneFormula& formula, const PoolCandidate& plan, int number, double within_s) {
  const double takes_s = formula.prompts_take_s(plan, number);
  return std::isfinite(takes_s) && takes_s <= within_s;
}
bool decodes_keep(const TuneFormula& formula, const PoolCandidate& plan, int number, double within_s) {
  const PromisedTimes times = formula.decodes_take(plan, number);
  return formula.keeps(times) && times.ttft_s <= within_s;
}

bool held_within(const std::vector<int>& inventory, const Split& one, const Split& other) {
  for (std::size_t part = 0; part < inventory.size(); ++part) {
    if (one.taken[part] + other.taken[part] > inventory[part]) return false;
  }
  return true;
}

}  // namespace

std::vector<int> lengths_to_divide_at(const ServingTuneSpec& spec, const LoadMoments& load) {
  std::vector<int> bounds = spec.lengths;
  if (spec.divides_anywhere) {
    const double each = std::accumulate(load.inputs.begin(), load.inputs.end(), 0.0) / usual_buckets;
    double seen = 0;
    for (const double tokens : load.inputs) {
      if ((seen += tokens) >= each * static_cast<double>(bounds.size() + 1)) bounds.push_back(static_cast<int>(tokens));
    }
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  }
  // One at or behind the longest prompt divides nothing, nor one up to which there are no prompts behind the one before.
  LengthRange next;
  std::erase_if(bounds, [&](int bound) {
    next.up_to = bound;
    if (bound >= load.inputs.back() || share_within(load, next) <= 0) return true;
    next.above = bound;
    return false;
  });
  return bounds;
}

std::string why_undivided(const ServingTuneSpec& spec, const LoadMoments& load) {
  if (!spec.divides()) return {};
  if (spec.goals.front() == ServingGoal::goodput_per_cost) return "tune.lengths changes nothing: goodput-per-cost takes one plan in a role";
  if (!lengths_to_divide_at(spec, load).empty()) return {};
  return fmt::format("tune.lengths changes nothing: none of them divides prompts of {:.0f} to {:.0f} tokens", load.inputs.front(),
                     load.inputs.back());
}

LengthDivisions::LengthDivisions(const TuneSides& sides, bool counts_gpus)
    : sides_(sides), counts_gpus_(counts_gpus), bounds_(lengths_to_divide_at(sides.spec, sides.load)) {}

const TuneFormula& LengthDivisions::formula_of(std::size_t from, std::size_t to) {
  const std::pair key(from, to);
  if (const auto known = formulas_.find(key); known != formulas_.end()) return known->second;
  LengthRange range;
  if (from > 0) range.above = bounds_[from - 1];
  if (to <= bounds_.size()) range.up_to = bounds_[to - 1];
  const LoadMoments& load = loads_.try_emplace(key, load_within(sides_.load, range)).first->second;
  return formulas_.try_emplace(key, sides_, load).first->second;
}

LengthDivisions::Role LengthDivisions::divided(const std::vector<Candidates>& by_part, Does does, double within_s) {
  Role role;
  SplitProblem problem;
  problem.buckets = bounds_.size() + 1;
  problem.inventory = sides_.spec.inventory;
  for (const Candidates& part : by_part) {
    for (const PoolCandidate& plan : part) {
      role.plans.push_back(&plan);
      problem.plans.push_back(plan.side);
      if (counts_gpus_) problem.plans.back().cost = plan.side.gpus;
    }
  }
  problem.least_instances = [&](std::size_t at, std::size_t from, std::size_t to, int most) {
    const PoolCandidate& plan = *role.plans[at];
    const TuneFormula& formula = formula_of(from, to);
    return least_number(std::min(most, sides_.most(plan)), [&](int number) { return does(formula, plan, number, within_s); });
  };
  role.splits = best_splits(problem);
  return role;
}

void LengthDivisions::add(const Role& role, const Split& split, PlanChoice& to) const {
  for (const SplitPiece& piece : split.pieces)
    to.push_back({role.plans[piece.plan], piece.instances, piece.to <= bounds_.size() ? bounds_[piece.to - 1] : 0});
}

std::vector<PlanChoice> LengthDivisions::together() {
  std::vector<PlanChoice> out;
  if (bounds_.empty()) return out;
  const Role both = divided(sides_.together, together_keeps, INFINITY);
  for (const Split& split : both.splits) {
    if (split.pieces.size() < 2) continue;
    add(both, split, out.emplace_back());
    if (out.size() == most_guesses) break;
  }
  return out;
}

std::optional<PlanChoice> LengthDivisions::apart(double share, double between_s) {
  if (bounds_.empty()) return {};
  const double within_s = sides_.ttft_within_s() - between_s;
  const Role prompts = divided(sides_.prompts, prompts_keep, share * within_s);
  if (prompts.splits.empty()) return {};
  const Role decodes = divided(sides_.decodes, decodes_keep, std::isfinite(within_s) ? (1 - share) * within_s : INFINITY);
  std::tuple<double, int> least(INFINITY, 0);  // cost, GPUs
  std::optional<PlanChoice> out;
  for (const Split& one : prompts.splits) {
    for (const Split& other : decodes.splits) {
      const std::tuple<double, int> both(one.cost + other.cost, one.gpus + other.gpus);
      if (one.pieces.size() + other.pieces.size() < 3 || both >= least || !held_within(sides_.spec.inventory, one, other)) continue;
      least = both;
      out.emplace();
      add(prompts, one, *out);
      add(decodes, other, *out);
    }
  }
  return out;
}

}  // namespace rehearse::sim
