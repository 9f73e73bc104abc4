#include "sim/serving/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>

#include "sim/serving/tune_candidates.hpp"
#include "sim/serving/tune_confirm.hpp"
#include "sim/serving/tune_front.hpp"
#include "sim/serving/tune_mixed.hpp"
#include "sim/serving/tune_near.hpp"
#include "sim/serving/tune_sweep.hpp"
#include "sim/serving/tune_value.hpp"

namespace rehearse::sim {
namespace {

// The formula's answers to what the search over pairs asks, of the prompts of one part and the decodes of another.
class FormulaPairs final : public PairModel {
 public:
  FormulaPairs(const TuneSides& sides, const TuneFormula& formula, const Candidates& prompts, const Candidates& decodes)
      : sides_(sides), formula_(formula), prompts_(prompts), decodes_(decodes) {}

  [[nodiscard]] int least_decoders(std::size_t plan) const override {
    return least_number(sides_.most(decodes_[plan]), [&](int n) { return formula_.keeps(formula_.decodes_take(decodes_[plan], n)); });
  }
  [[nodiscard]] double decoders_take_s(std::size_t plan, int number) const override {
    return formula_.decodes_take(decodes_[plan], number).ttft_s;
  }
  [[nodiscard]] double between_s(std::size_t prompt_plan, std::size_t decode_plan) const override {
    return formula_.between_at_least_s(prompts_[prompt_plan], decodes_[decode_plan]);
  }
  [[nodiscard]] int least_prompters(std::size_t plan, double within_s) const override {
    return least_number(sides_.most(prompts_[plan]), [&](int n) {
      const double takes_s = formula_.prompts_take_s(prompts_[plan], n);
      return std::isfinite(takes_s) && takes_s <= within_s;
    });
  }
  [[nodiscard]] bool keeps(std::size_t prompt_plan, int prompters, std::size_t decode_plan, int decoders) const override {
    const PoolCandidate &prompts = prompts_[prompt_plan], &decodes = decodes_[decode_plan];
    return formula_.holds(prompts, prompters, decodes, decoders) && formula_.keeps(formula_.apart(prompts, prompters, decodes, decoders));
  }

 private:
  const TuneSides& sides_;
  const TuneFormula& formula_;
  const Candidates &prompts_, &decodes_;
};

class Tuning {
 public:
  Tuning(const ServingJob& job, std::function<void(double)> progress)
      : job_(job),
        progress_([this, said = std::move(progress)](double share) { said(highest_ = std::max(highest_, share)); }),
        sides_(job, out_, [this](double share) { progress_(pricing * share); }) {}

  ServingTuning run() {
    const auto progress = [this](double share) { progress_(searching + (1 - searching) * share); };
    out_.goals = sides_.spec.goals;
    for (const ClusterPart& part : job_.parts) out_.parts.push_back(part.name);
    if (std::string why = why_undivided(sides_.spec, sides_.load); !why.empty()) out_.notes.push_back(std::move(why));
    if (out_.goals.front() == ServingGoal::goodput_per_cost) {
      out_.best = by_value(sides_, most_carried(), [this] { return cheapest(); });
      out_.rate_per_s = out_.best.empty() ? 0 : out_.best.front().rate_per_s;
      out_.output_tokens_per_s = out_.rate_per_s * sides_.load.output;
      out_.bound_per_s = INFINITY;
      confirm_tuned(job_, sides_.spec, out_, progress);
      return std::move(out_);
    }
    if (out_.goals.front() == ServingGoal::goodput) sides_.load.rate_per_s = most_carried();
    out_.rate_per_s = sides_.load.rate_per_s;
    out_.output_tokens_per_s = out_.rate_per_s * sides_.load.output;
    const bool by_cost = out_.goals.front() == ServingGoal::cost;
    const TuneFormula formula(sides_);
    if (by_cost || out_.goals.front() == ServingGoal::goodput) out_.best = cheapest(formula);
    if (!by_cost || out_.goals.size() > 1) take_front();
    if (out_.goals.front() == ServingGoal::goodput) {
      add_faster_mixed();
    } else {
      add_mixed();
    }
    confirm_tuned(job_, sides_.spec, out_, progress);
    if (by_cost && out_.goals.size() == 1 && sides_.spec.confirm > 0) settle(formula);
    return std::move(out_);
  }

 private:
  // What the search counted is of the promise as it is.
  void settle(const TuneFormula& formula) {
    const Promise asked = sides_.promise;
    const ServingTuning counted = out_;
    sides_.promise.ttft_s *= looser_ttft;
    sides_.promise.tpot_s *= looser_tpot;
    const std::vector<TunedDeployment> looser = cheapest(formula);
    sides_.promise = asked;
    out_ = counted;
    settle_by_simulation(sides_, formula, looser, out_);
  }

  [[nodiscard]] PairProblem problem_of(std::size_t prompt_part, std::size_t decode_part) const {
    PairProblem problem;
    for (const PoolCandidate& candidate : sides_.prompts[prompt_part]) problem.prompts.push_back(candidate.side);
    for (const PoolCandidate& candidate : sides_.decodes[decode_part]) problem.decodes.push_back(candidate.side);
    problem.inventory = sides_.spec.inventory;
    problem.within_s = sides_.ttft_within_s();
    return problem;
  }

  void add_pairs(const TuneFormula& formula, std::size_t prompt_part, std::size_t decode_part, std::vector<TunedDeployment>& into) {
    const Candidates &prompts = sides_.prompts[prompt_part], &decodes = sides_.decodes[decode_part];
    const FormulaPairs model(sides_, formula, prompts, decodes);
    const PairAnswer answer = cheapest_pairs(problem_of(prompt_part, decode_part), model, static_cast<std::size_t>(sides_.spec.keep));
    out_.pairs += answer.pairs;
    out_.looked_at += answer.looked_at;
    out_.bound_per_s = std::min(out_.bound_per_s, answer.bound);
    for (const PairChoice& choice : answer.best) {
      const PoolCandidate &one = prompts[choice.prompts], &other = decodes[choice.decodes];
      const PromisedTimes times = formula.apart(one, choice.prompters, other, choice.decoders);
      TunedDeployment& found = into.emplace_back();
      add_pool(found, one, choice.prompters);
      add_pool(found, other, choice.decoders);
      found.cost_per_s = choice.cost;
      found.gpus = choice.gpus;
      found.kind = sides_.kind_of(prompt_part, decode_part);
      found.ttft_s = times.ttft_s;
      found.tpot_s = times.tpot_s;
    }
  }

  // A plan with the least number that could do.
  struct Least {
    std::size_t plan = 0;
    int number = 0, gpus = 0;
    double cost = 0;
  };
  [[nodiscard]] std::vector<Least> least_together(const TuneFormula& formula, const Candidates& candidates) const {
    std::vector<Least> out;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const SidePlan& side = candidates[i].side;
      const int number =
          least_number(sides_.most(candidates[i]), [&](int n) { return formula.keeps(formula.together_at_least(candidates[i], n)); });
      if (number != no_number) out.push_back({i, number, number * side.gpus, number * side.cost});
    }
    std::ranges::stable_sort(out, {}, [](const Least& one) { return std::tuple(one.cost, one.gpus); });
    return out;
  }

  // From the plan on whose bound is the lowest, until no other can be the cheapest, or among those that cost no more than a limit.
  void add_together(const TuneFormula& formula, std::size_t part, double limit, std::vector<TunedDeployment>& into) const {
    const Candidates& candidates = sides_.together[part];
    std::set<std::tuple<double, int, std::size_t>> kept;  // cost, GPUs, plan
    const auto keep = static_cast<std::size_t>(sides_.spec.keep);
    std::vector<int> numbers(candidates.size());
    for (const Least& least : least_together(formula, candidates)) {
      const PoolCandidate& candidate = candidates[least.plan];
      const auto is_kept = [&](int n) {
        if (kept.empty()) return true;
        const std::tuple all{n * candidate.side.cost, n * candidate.side.gpus, least.plan};
        if (std::get<double>(all) > limit) return all < *kept.begin();
        return kept.size() < keep || all < *kept.rbegin();
      };
      if (!is_kept(least.number)) continue;
      int most = sides_.most(candidate);
      if (!is_kept(most)) most = least_number(most, [&](int n) { return !is_kept(n); }) - 1;
      const auto does = [&](int n) { return formula.keeps(formula.together(candidate, n)); };
      const int more = least_number(most - least.number + 1, [&](int n) { return does(least.number - 1 + n); });
      if (more == no_number) continue;
      const int number = least.number - 1 + more;
      numbers[least.plan] = number;
      kept.emplace(number * candidate.side.cost, number * candidate.side.gpus, least.plan);
      if (kept.size() > keep) kept.erase(std::prev(kept.end()));
    }
    for (const auto& [cost, gpus, plan] : kept) {
      const int number = numbers[plan];
      const PromisedTimes times = formula.together(candidates[plan], number);
      TunedDeployment& found = into.emplace_back();
      add_pool(found, candidates[plan], number);
      found.cost_per_s = cost;
      found.gpus = gpus;
      found.kind = sides_.kind_of(part);
      found.ttft_s = times.ttft_s;
      found.tpot_s = times.tpot_s;
    }
  }

  // The most that one of the cheapest so many costs; infinite: there are fewer.
  [[nodiscard]] double cost_of_kept(const std::vector<TunedDeployment>& all) const {
    const auto keep = static_cast<std::size_t>(sides_.spec.keep);
    if (all.size() < keep) return INFINITY;
    std::vector<double> costs;
    for (const TunedDeployment& one : all) costs.push_back(one.cost_per_s);
    std::ranges::nth_element(costs, costs.begin() + static_cast<std::ptrdiff_t>(keep) - 1);
    return costs[keep - 1];
  }

  // At the rate of the load.
  std::vector<TunedDeployment> cheapest() { return cheapest(TuneFormula(sides_)); }
  std::vector<TunedDeployment> cheapest(const TuneFormula& formula) {
    out_.pairs = out_.looked_at = 0;
    out_.bound_per_s = INFINITY;
    std::vector<TunedDeployment> all, apart;
    for (std::size_t one = 0; one < job_.parts.size(); ++one) {
      for (std::size_t other = 0; other < job_.parts.size(); ++other) {
        add_pairs(formula, one, other, apart);
        tick();
      }
    }
    const double limit = cost_of_kept(apart);
    for (std::size_t part = 0; part < job_.parts.size(); ++part) add_together(formula, part, limit, all);
    std::ranges::move(apart, std::back_inserter(all));
    std::ranges::stable_sort(all, {}, [](const TunedDeployment& one) { return std::tuple(one.cost_per_s, one.gpus); });
    // The cheapest so many, and the cheapest of each kind.
    std::vector<TunedDeployment> kept;
    std::set<std::string> kinds;
    for (TunedDeployment& one : all) {
      const bool first = kinds.insert(one.kind).second;
      if (first || kept.size() < static_cast<std::size_t>(sides_.spec.keep)) kept.push_back(std::move(one));
    }
    return kept;
  }

  // Several plans in a role, where that is cheaper, or takes fewer GPUs where they are what is asked for. Of other goals those that stand
  // on the front.
  void add_mixed() {
    const ServingGoal goal = out_.goals.front();
    const bool by_cost = goal == ServingGoal::cost, counts_gpus = goal == ServingGoal::gpus;
    const bool has_front = !by_cost || out_.goals.size() > 1;
    MixedDeployments mixed(sides_, counts_gpus);
    for (TunedDeployment& one : mixed.cheaper_than(by_cost ? out_.best : out_.front)) {
      const bool stands = has_front && add_to_front(sides_, one, out_.front);
      if (by_cost || (counts_gpus && stands)) out_.best.push_back(std::move(one));
    }
    if (!by_cost && !counts_gpus) return take_best();
    std::ranges::stable_sort(out_.best, {}, [&](const TunedDeployment& one) {
      return counts_gpus ? std::tuple<double, double>(one.gpus, one.cost_per_s) : std::tuple<double, double>(one.cost_per_s, one.gpus);
    });
  }

  // What several plans in a role carry beyond one plan a role, to a thousandth.
  void add_faster_mixed() {
    const double alone = sides_.load.rate_per_s;
    if (alone <= 0) return;
    MixedDeployments mixed(sides_, false);
    std::vector<TunedDeployment> fastest;
    const auto carries = [&](double rate) {
      tick();
      sides_.load.rate_per_s = rate;
      std::vector<TunedDeployment> found = mixed.cheaper_than({});
      if (found.empty()) return false;
      fastest = std::move(found);
      return true;
    };
    const double most = highest_rate(alone, 2 * alone, carries);
    sides_.load.rate_per_s = alone;
    if (fastest.empty()) return;
    out_.notes.push_back(fmt::format("several plans in a role carry {:.4g} requests/s by formula", most));
    const TuneFormula formula(sides_);
    for (TunedDeployment& one : fastest) {
      const PromisedTimes times = formula.of(one);
      one.ttft_s = times.ttft_s;
      one.tpot_s = times.tpot_s;
      out_.best.push_back(std::move(one));
    }
  }

  // Where cost does not come first and few stand on the front, those that are simulated stand on a wider one, of cost and both times too:
  // on the narrow one may be nothing but deployments at the edge of the promise, which a simulation does not keep.
  void take_front() {
    if (out_.goals.front() == ServingGoal::goodput) return;
    const auto progress = [this](double share) { progress_(pricing + (searching - pricing) * share); };
    out_.front = deployment_front(sides_, progress);
    if (out_.goals.front() == ServingGoal::cost) return;
    out_.bound_per_s = INFINITY;
    wider_ = out_.front;
    if (sides_.spec.confirm > 0 && out_.front.size() < static_cast<std::size_t>(sides_.spec.keep)) {
      const std::vector<ServingGoal> goals = sides_.spec.goals;
      for (const ServingGoal goal : {ServingGoal::cost, ServingGoal::ttft, ServingGoal::tpot}) {
        if (std::ranges::find(goals, goal) == goals.end()) sides_.spec.goals.push_back(goal);
      }
      wider_ = deployment_front(sides_, progress);
      sides_.spec.goals = goals;
    }
    take_best();
  }
  // The others are there for when none of those that are reported keeps the promise.
  void take_best() {
    constexpr std::size_t times_kept = 5;
    out_.best = wider_;
    for (const TunedDeployment& one : out_.front) {
      if (one.mixed) out_.best.push_back(one);
    }
    std::ranges::stable_sort(out_.best, {}, [&](const TunedDeployment& one) { return goal_value(out_, one); });
    const std::size_t most =
        sides_.spec.confirm > 0 ? times_kept * static_cast<std::size_t>(sides_.spec.keep) : static_cast<std::size_t>(sides_.spec.keep);
    if (out_.best.size() > most) out_.best.resize(most);
  }

  // So much of the search is done as its steps, whose number is not known, let one guess.
  void tick() {
    constexpr double usual_steps = 20;
    progress_(pricing + (searching - pricing) * (1 - std::exp(-++ticks_ / usual_steps)));
  }

  // Whether any deployment carries the load's rate.
  [[nodiscard]] bool is_carried() const {
    const TuneFormula formula(sides_);
    for (std::size_t one = 0; one < job_.parts.size(); ++one) {
      for (std::size_t other = 0; other < job_.parts.size(); ++other) {
        const FormulaPairs model(sides_, formula, sides_.prompts[one], sides_.decodes[other]);
        if (!cheapest_pairs(problem_of(one, other), model, 1).best.empty()) return true;
      }
    }
    const auto carries = [&](const PoolCandidate& candidate) {
      const int most = sides_.most(candidate);
      return most > 0 && formula.keeps(formula.together_at_least(candidate, most)) && formula.keeps(formula.together(candidate, most));
    };
    return std::ranges::any_of(sides_.together, [&](const Candidates& part) { return std::ranges::any_of(part, carries); });
  }

  // The highest rate for which the inventory holds a deployment, to a thousandth.
  double most_carried() {
    const double asked = sides_.load.rate_per_s;
    const auto carries = [&](double rate) {
      tick();
      sides_.load.rate_per_s = rate;
      return is_carried();
    };
    return highest_rate(0, asked, carries);
  }

  // To a thousandth, from a rate that is carried, or none, and a higher one.
  template <class Carries>
  static double highest_rate(double low, double high, Carries carries) {
    for (int doubling = 0; doubling < 40 && carries(high); ++doubling) {
      low = high;
      high *= 2;
    }
    for (int halving = 0; low == 0 && halving < 40; ++halving) {
      if (carries(high / 2))
        low = high / 2;
      else
        high /= 2;
    }
    while (low > 0 && high > low * 1.001) {
      const double middle = (low + high) / 2;
      (carries(middle) ? low : high) = middle;
    }
    return low;
  }

  static constexpr double pricing = 0.1, searching = 0.5;  // of the progress: plans are priced, deployments are found
  const ServingJob& job_;
  std::function<void(double)> progress_;
  double ticks_ = 0, highest_ = 0;
  std::vector<TunedDeployment> wider_;  // front
  ServingTuning out_;
  TuneSides sides_;
};

}  // namespace

ServingJob with_pools(const ServingJob& job, const TunedDeployment& deployment, double rate_per_s) {
  ServingJob out = job;
  out.pools = deployment.pools;
  out.faults.clear();
  for (const Pool& pool : out.pools) {
    if (pool.longest_prompt > 0) (pool.role == Role::decode ? out.decode_router : out.prompt_router) = divides_by_length;
  }
  const double asked_per_s = moments_of(job.load, job.seed).rate_per_s;
  if (rate_per_s == asked_per_s) return out;
  out.load.arrivals.rate_per_s *= rate_per_s / asked_per_s;
  out.load.arrivals.speed *= rate_per_s / asked_per_s;
  return out;
}

void check_tunable(const ServingJob& job, const config::Node& serving) {
  if (job.promise.ttft_s <= 0 && job.promise.tpot_s <= 0)
    serving.fail_at_key("tune needs a promise to keep", "write serving.slo: {ttft: 1 s, tpot: 50 ms}");
  for (const Pool& pool : job.pools) {
    if (!pool.prefix_cache) continue;
    serving.at("pools")
        .at(pool.name)
        .at("prefix_cache")
        .fail("tune knows no prefix caches: what is found depends on the number of instances", "leave prefix_cache out");
  }
  if (job.isolate) serving.at("isolate").fail("tune chooses both sides: isolate leaves one out");
  if (moments_of(job.load, job.seed).rate_per_s <= 0)
    serving.at("load").at("arrivals").fail("tune needs requests that come at a rate", "write for example arrivals: {poisson: 6 /s}");
}

ServingTuning tune_serving(const ServingJob& job, const std::function<void(double)>& progress) { return Tuning(job, progress).run(); }

}  // namespace rehearse::sim
