#include "sim/serving/tune.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/serving/goodput.hpp"
#include "sim/serving/tune_candidates.hpp"
#include "sim/serving/tune_front.hpp"
#include "sim/serving/tune_mixed.hpp"

namespace rehearse::sim {
namespace {

class Tuning {
 public:
  explicit Tuning(const ServingJob& job) : job_(job), sides_(job, out_) {}

  ServingTuning run(const std::function<void(double)>& progress) {
    out_.goals = sides_.spec.goals;
    for (const ClusterPart& part : job_.parts) out_.parts.push_back(part.name);
    if (out_.goals.front() == ServingGoal::goodput) sides_.load.rate_per_s = most_carried();
    out_.rate_per_s = sides_.load.rate_per_s;
    const bool by_cost = out_.goals.front() == ServingGoal::cost;
    if (by_cost || out_.goals.front() == ServingGoal::goodput) out_.best = cheapest();
    if (!by_cost || out_.goals.size() > 1) take_front();
    if (by_cost) add_mixed();
    confirm(progress);
    return std::move(out_);
  }

 private:
  void add_pairs(std::size_t prompt_part, std::size_t decode_part, std::vector<TunedDeployment>& into) {
    const Candidates &prompts = sides_.prompts[prompt_part], &decodes = sides_.decodes[decode_part];
    PairProblem problem;
    for (const Candidate& candidate : prompts) problem.prompts.push_back(candidate.side);
    for (const Candidate& candidate : decodes) problem.decodes.push_back(candidate.side);
    problem.inventory = sides_.spec.inventory;
    problem.within_s = sides_.ttft_within_s();
    const FormulaPairs model(sides_, prompts, decodes);
    const PairAnswer answer = cheapest_pairs(problem, model, static_cast<std::size_t>(sides_.spec.keep));
    out_.pairs += answer.pairs;
    out_.looked_at += answer.looked_at;
    out_.bound_per_s = std::min(out_.bound_per_s, answer.bound);
    const double rate = sides_.load.rate_per_s;
    for (const PairChoice& choice : answer.best) {
      const SideTimes decoding = model.decode_times(choice.decodes, rate / choice.decoders);
      TunedDeployment& found = into.emplace_back();
      found.pools = {with_number(prompts[choice.prompts], choice.prompters), with_number(decodes[choice.decodes], choice.decoders)};
      found.cost_per_s = choice.cost;
      found.gpus = choice.gpus;
      found.kind = sides_.kind_of(prompt_part, decode_part);
      found.ttft_s =
          model.prompts_take_s(choice.prompts, rate, choice.prompters) + model.between_s(choice.prompts, choice.decodes) + decoding.ttft_s;
      found.tpot_s = decoding.tpot_s;
    }
  }

  void add_together(std::size_t part, std::vector<TunedDeployment>& into) const {
    for (const Candidate& candidate : sides_.together[part]) {
      const auto times_of = [&](int n) { return together_times(sides_, candidate, sides_.load.rate_per_s / n); };
      const int number = least_number(sides_.most(candidate), [&](int n) {
        const SideTimes times = times_of(n);
        return std::isfinite(times.ttft_s) && times.ttft_s <= sides_.ttft_within_s() && times.tpot_s <= sides_.tpot_within_s();
      });
      if (number == no_number) continue;
      TunedDeployment& found = into.emplace_back();
      found.pools = {with_number(candidate, number)};
      found.cost_per_s = number * candidate.side.cost;
      found.gpus = number * candidate.side.gpus;
      found.kind = sides_.kind_of(part);
      found.ttft_s = times_of(number).ttft_s;
      found.tpot_s = times_of(number).tpot_s;
    }
  }

  // At the rate of the load.
  std::vector<TunedDeployment> cheapest() {
    out_.pairs = out_.looked_at = 0;
    out_.bound_per_s = INFINITY;
    std::vector<TunedDeployment> all;
    for (std::size_t part = 0; part < job_.parts.size(); ++part) add_together(part, all);
    for (std::size_t one = 0; one < job_.parts.size(); ++one) {
      for (std::size_t other = 0; other < job_.parts.size(); ++other) add_pairs(one, other, all);
    }
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

  // Several plans in a role, where that is cheaper.
  void add_mixed() {
    for (TunedDeployment& one : mixed_deployments(sides_, out_.best)) out_.best.push_back(std::move(one));
    std::ranges::stable_sort(out_.best, {}, [](const TunedDeployment& one) { return std::tuple(one.cost_per_s, one.gpus); });
  }

  // Where cost does not come first the best are those of the front.
  void take_front() {
    if (out_.goals.front() == ServingGoal::goodput) return;
    out_.front = deployment_front(sides_);
    if (out_.goals.front() == ServingGoal::cost) return;
    out_.bound_per_s = INFINITY;
    const std::size_t kept = std::min(out_.front.size(), static_cast<std::size_t>(sides_.spec.keep));
    out_.best.assign(out_.front.begin(), out_.front.begin() + static_cast<std::ptrdiff_t>(kept));
  }

  // The highest rate for which the inventory holds a deployment, to a thousandth.
  double most_carried() {
    const double asked = sides_.load.rate_per_s;
    const auto carries = [&](double rate) {
      sides_.load.rate_per_s = rate;
      return !cheapest().empty();
    };
    double low = 0, high = asked;
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

  // Simulates the first ones, more of them until one keeps the promise, and the first of each kind; on the same requests.
  void confirm(const std::function<void(double)>& progress) {
    if (out_.best.empty()) return;
    if (sides_.spec.confirm == 0) {
      out_.chosen = 0;
      return;
    }
    std::set<std::string> kinds;
    for (std::size_t i = 0; i < out_.best.size(); ++i) {
      const bool first = kinds.insert(out_.best[i].kind).second;
      if (!first && out_.chosen && i >= static_cast<std::size_t>(sides_.spec.confirm)) continue;
      simulate(out_.best[i]);
      if (is_better(i)) out_.chosen = i;
      progress(static_cast<double>(i + 1) / static_cast<double>(out_.best.size()));
    }
  }

  // Of the highest rate each is asked for its own, by bisection.
  void simulate(TunedDeployment& one) const {
    ServingJob job = with_pools(job_, one);
    const double times = out_.rate_per_s / moments_of(job_.load, job_.seed).rate_per_s;
    job.load.arrivals.rate_per_s *= times;
    job.load.arrivals.speed *= times;
    const Deployment deployment = deploy(job);
    const ServingSetup setup = setup_of(job, deployment);
    one.simulated = result_of(job, setup, simulate_serving(setup));
    if (out_.goals.front() == ServingGoal::goodput) one.simulated->goodput_per_s = goodput_of(job, deployment, [](double) {});
  }

  [[nodiscard]] bool is_better(std::size_t i) const {
    const auto rate_of = [&](std::size_t at) { return out_.best[at].simulated->goodput_per_s; };
    if (out_.goals.front() == ServingGoal::goodput) return rate_of(i) > (out_.chosen ? rate_of(*out_.chosen) : 0);
    return out_.best[i].simulated->kept && !out_.chosen;
  }

  const ServingJob& job_;
  ServingTuning out_;
  TuneSides sides_;
};

}  // namespace

ServingJob with_pools(const ServingJob& job, const TunedDeployment& deployment) {
  ServingJob out = job;
  out.pools = deployment.pools;
  out.faults.clear();
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

ServingTuning tune_serving(const ServingJob& job, const std::function<void(double)>& progress) { return Tuning(job).run(progress); }

}  // namespace rehearse::sim
