#include "sim/serving/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/serving/exposed_hand_over.hpp"
#include "sim/serving/pair_search.hpp"
#include "sim/serving/tune_keys.hpp"

namespace rehearse::sim {
namespace {

// A plan of one instance, priced.
struct Candidate {
  std::unique_ptr<const Pool> pool;
  PoolDeployment deployment;
  SidePlan side;
};

using Candidates = std::vector<Candidate>;

// The pool of the job that a new one of this role is made from.
const Pool& template_of(const ServingJob& job, Role role) {
  const auto same = std::ranges::find(job.pools, role, &Pool::role);
  return same != job.pools.end() ? *same : job.pools.front();
}

std::vector<int> or_one(const std::vector<int>& given, int otherwise) { return given.empty() ? std::vector<int>{otherwise} : given; }

std::vector<int> tensor_degrees(const std::vector<int>& given, const topology::ClusterSpec& cluster) {
  if (!given.empty()) return given;
  std::vector<int> all;
  for (int tp = 1; tp <= cluster.domain_gpus(); tp *= 2) all.push_back(tp);
  return all;
}

class Space {
 public:
  Space(const ServingJob& job, const ServingTuneSpec& spec, const LoadMoments& load, ServingTuning& counts)
      : job_(job), spec_(spec), load_(load), counts_(counts) {}

  // Of a role in a part.
  [[nodiscard]] Candidates of(Role role, std::size_t part) {
    Candidates out;
    const Pool& like = template_of(job_, role);
    for (const int tp : tensor_degrees(spec_.tp, job_.parts[part].cluster)) {
      for (const int pp : or_one(spec_.pp, 1)) {
        for (const int dp : or_one(spec_.dp, 1)) {
          for (const int sequences : or_one(spec_.sequences, like.habits.sequences)) {
            for (const int tokens : or_one(spec_.tokens, like.habits.tokens)) {
              Pool pool = like;
              pool.role = role;
              pool.name = like.role == role ? like.name : role_name(role);
              pool.part = part;
              pool.instances = 1;
              pool.kv_tokens = 0;
              pool.price_per_s = spec_.price_per_s[part];
              pool.plan.tp = tp;
              pool.plan.pp = pp;
              pool.plan.dp = dp;
              pool.plan.ep = like.plan.ep > 1 || dp > 1 ? tp * dp : 1;
              pool.habits.sequences = sequences;
              pool.habits.tokens = tokens;
              add(std::move(pool), out);
            }
          }
        }
      }
    }
    return out;
  }

 private:
  static std::string role_name(Role role) { return role == Role::both ? "all" : role == Role::prefill ? "prefill" : "decode"; }

  void add(Pool pool, Candidates& into) {
    if (pool.plan.gpus() > spec_.inventory[pool.part]) return;
    ++counts_.plans;
    static_cast<void>(settle_precision(pool, job_.parts[pool.part].gpu));
    if (plan_refusal(job_, pool)) {
      ++counts_.refused;
      return;
    }
    Candidate candidate;
    candidate.pool = std::make_unique<const Pool>(std::move(pool));
    candidate.deployment = deploy_pool(job_, *candidate.pool);
    const InstanceRules& rules = candidate.deployment.rules;
    // A prompt of the 99th percentile fits, and where it is decoded a mean answer behind it.
    const double longest = load_.input_at(0.99) + (rules.role == Role::prefill ? 0 : load_.output);
    if (static_cast<double>(rules.pages * rules.page) < longest) {
      ++counts_.unfit;
      return;
    }
    const int gpus = candidate.pool->plan.gpus();
    candidate.side = {candidate.pool->part, gpus, gpus * candidate.pool->price_per_s};
    into.push_back(std::move(candidate));
  }

  const ServingJob& job_;
  const ServingTuneSpec& spec_;
  const LoadMoments& load_;
  ServingTuning& counts_;
};

// The least number of instances from 1 to `most` that does; more always do where fewer do.
template <class Does>
int least_number(int most, Does does) {
  if (most < 1 || !does(most)) return no_number;
  int low = 0, high = most;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (does(middle) ? high : low) = middle;
  }
  return high;
}

// The formula's answers to what the search over pairs asks.
class FormulaPairs final : public PairModel {
 public:
  FormulaPairs(const ServingJob& job, const ServingTuneSpec& spec, const Promise& promise, const LoadMoments& load,
               const Candidates& prompts, const Candidates& decodes, NetworkTransfers::Fabrics fabrics)
      : scratch_(job), spec_(spec), promise_(promise), load_(load), prompts_(prompts), decodes_(decodes), fabrics_(std::move(fabrics)) {}

  [[nodiscard]] int least_decoders(std::size_t plan) const override {
    return least_number(most(decodes_[plan]), [&](int n) {
      const PoolState state = decoding(plan, n);
      return std::isfinite(state.ttft_s) && (promise_.tpot_s <= 0 || state.tpot_high_s <= promise_.tpot_s);
    });
  }
  [[nodiscard]] double decoders_take_s(std::size_t plan, int number) const override {
    if (scratch_.transfer.prefill_answers_first) return 0;
    const PoolState state = decoding(plan, number);
    return decodes_[plan].pool->habits.request_s + state.queue_s + state.tpot_s;
  }
  [[nodiscard]] double between_s(std::size_t prompt_plan, std::size_t decode_plan) const override {
    scratch_.pools = {*prompts_[prompt_plan].pool, *decodes_[decode_plan].pool};
    const NetworkTransfers transfers(scratch_, fabrics_);
    if (load_.rate_per_s >= transfers.carried_per_s(load_.input)) return INFINITY;
    if (scratch_.transfer.prefill_answers_first) return 0;
    // The second engine's front is among what decoders take, though chunks may hide some of it.
    const PoolFormula prompts(prompts_[prompt_plan].deployment, load_);
    return exposed_hand_over(prompts, transfers, load_.input, decodes_[decode_plan].pool->habits.request_s).transfer_s;
  }
  [[nodiscard]] int least_prompters(std::size_t plan, double within_s) const override {
    const Candidate& candidate = prompts_[plan];
    const PoolFormula formula(candidate.deployment, load_);
    const double left_s = within_s - candidate.pool->habits.request_s;
    return least_number(most(candidate), [&](int n) {
      const PoolState state = prompts_alone(formula, load_, load_.rate_per_s, n);
      return std::isfinite(state.ttft_s) && state.ttft_high_s <= left_s;
    });
  }

 private:
  [[nodiscard]] int most(const Candidate& candidate) const { return spec_.inventory[candidate.side.part] / candidate.side.gpus; }
  [[nodiscard]] PoolState decoding(std::size_t plan, int n) const {
    return decoding_alone(PoolFormula(decodes_[plan].deployment, load_), load_, load_.rate_per_s / n);
  }

  mutable ServingJob scratch_;  // whose pools are the two asked about
  const ServingTuneSpec& spec_;
  const Promise& promise_;
  const LoadMoments& load_;
  const Candidates &prompts_, &decodes_;
  NetworkTransfers::Fabrics fabrics_;
};

Pool with_number(const Candidate& candidate, int instances) {
  Pool pool = *candidate.pool;
  pool.instances = instances;
  return pool;
}

class Tuning {
 public:
  explicit Tuning(const ServingJob& job)
      : job_(job), spec_(job.tune ? *job.tune : usual_serving_tune(job)), promise_(job.promise), load_(moments_of(job.load, job.seed)) {
    if (promise_.both && promise_.ttft_s > 0 && promise_.tpot_s > 0) promise_.percentile = std::sqrt(promise_.percentile);
    load_.percentile = promise_.percentile;
    Space space(job_, spec_, load_, out_);
    for (std::size_t part = 0; part < job_.parts.size(); ++part) {
      together_.push_back(space.of(Role::both, part));
      prompts_.push_back(space.of(Role::prefill, part));
      decodes_.push_back(space.of(Role::decode, part));
      fabrics_.push_back(fabric_for(job_.parts[part].cluster, 2 * most_gpus_of_an_instance(part) + job_.parts[part].cluster.gpus_per_node));
    }
  }

  ServingTuning run(const std::function<void(double)>& progress) {
    out_.goal = spec_.goal;
    if (spec_.goal == ServingGoal::goodput) load_.rate_per_s = most_carried();
    out_.rate_per_s = load_.rate_per_s;
    out_.best = cheapest();
    confirm(progress);
    return std::move(out_);
  }

 private:
  [[nodiscard]] int most_gpus_of_an_instance(std::size_t part) const {
    int most = 1;
    for (const auto* side : {&prompts_, &decodes_}) {
      for (const Candidate& candidate : (*side)[part]) most = std::max(most, candidate.side.gpus);
    }
    return most;
  }

  [[nodiscard]] std::string kind_of(std::size_t prompt_part, std::size_t decode_part) const {
    const std::string &one = job_.parts[prompt_part].name, &other = job_.parts[decode_part].name;
    if (prompt_part != decode_part) return fmt::format("apart on {} and {}", one, other);
    return one.empty() ? "apart" : "apart on " + one;
  }

  void add_pairs(std::size_t prompt_part, std::size_t decode_part, std::vector<TunedDeployment>& into) {
    const Candidates &prompts = prompts_[prompt_part], &decodes = decodes_[decode_part];
    PairProblem problem;
    for (const Candidate& candidate : prompts) problem.prompts.push_back(candidate.side);
    for (const Candidate& candidate : decodes) problem.decodes.push_back(candidate.side);
    problem.inventory = spec_.inventory;
    problem.within_s = promise_.ttft_s > 0 ? promise_.ttft_s : INFINITY;
    const FormulaPairs model(job_, spec_, promise_, load_, prompts, decodes, fabrics_);
    const PairAnswer answer = cheapest_pairs(problem, model, static_cast<std::size_t>(spec_.keep));
    out_.pairs += answer.pairs;
    out_.looked_at += answer.looked_at;
    out_.bound_per_s = std::min(out_.bound_per_s, answer.bound);
    for (const PairChoice& choice : answer.best) {
      TunedDeployment& found = into.emplace_back();
      found.pools = {with_number(prompts[choice.prompts], choice.prompters), with_number(decodes[choice.decodes], choice.decoders)};
      found.cost_per_s = choice.cost;
      found.gpus = choice.gpus;
      found.kind = kind_of(prompt_part, decode_part);
    }
  }

  void add_together(std::size_t part, std::vector<TunedDeployment>& into) const {
    for (const Candidate& candidate : together_[part]) {
      const PoolFormula formula(candidate.deployment, load_);
      const int number = least_number(spec_.inventory[part] / candidate.side.gpus, [&](int n) {
        const PoolState state = sim::together(formula, load_, load_.rate_per_s / n);
        return std::isfinite(state.ttft_s) &&
               (promise_.ttft_s <= 0 || state.ttft_high_s + candidate.pool->habits.request_s <= promise_.ttft_s) &&
               (promise_.tpot_s <= 0 || state.tpot_high_s <= promise_.tpot_s);
      });
      if (number == no_number) continue;
      const std::string& name = job_.parts[part].name;
      into.push_back({.pools = {with_number(candidate, number)},
                      .cost_per_s = number * candidate.side.cost,
                      .gpus = number * candidate.side.gpus,
                      .kind = name.empty() ? "together" : "together on " + name,
                      .simulated = {}});
    }
  }

  // At the rate of load_.
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
      if (first || kept.size() < static_cast<std::size_t>(spec_.keep)) kept.push_back(std::move(one));
    }
    return kept;
  }

  // The highest rate for which the inventory holds a deployment, to a thousandth.
  double most_carried() {
    const double asked = load_.rate_per_s;
    const auto carries = [&](double rate) {
      load_.rate_per_s = rate;
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

  // Simulates the first ones, more of them until one keeps the promise, and the cheapest of each kind; on the same requests.
  void confirm(const std::function<void(double)>& progress) {
    if (out_.best.empty()) return;
    if (spec_.confirm == 0) {
      out_.chosen = 0;
      return;
    }
    std::set<std::string> kinds;
    for (std::size_t i = 0; i < out_.best.size(); ++i) {
      TunedDeployment& one = out_.best[i];
      const bool first = kinds.insert(one.kind).second;
      if (!first && out_.chosen && i >= static_cast<std::size_t>(spec_.confirm)) continue;
      ServingJob job = with_pools(job_, one);
      const double times = out_.rate_per_s / moments_of(job_.load, job_.seed).rate_per_s;
      job.load.arrivals.rate_per_s *= times;
      job.load.arrivals.speed *= times;
      const Deployment deployment = deploy(job);
      const ServingSetup setup = setup_of(job, deployment);
      one.simulated = result_of(job, setup, simulate_serving(setup));
      if (one.simulated->kept && !out_.chosen) out_.chosen = i;
      progress(static_cast<double>(i + 1) / static_cast<double>(out_.best.size()));
    }
  }

  const ServingJob& job_;
  ServingTuneSpec spec_;
  Promise promise_;
  LoadMoments load_;
  ServingTuning out_;
  std::vector<Candidates> together_, prompts_, decodes_;  // by part
  NetworkTransfers::Fabrics fabrics_;
};

}  // namespace

ServingJob with_pools(const ServingJob& job, const TunedDeployment& deployment) {
  ServingJob out = job;
  out.pools = deployment.pools;
  out.faults.clear();
  return out;
}

ServingTuning tune_serving(const ServingJob& job, const std::function<void(double)>& progress) {
  if (job.promise.ttft_s <= 0 && job.promise.tpot_s <= 0)
    throw config::InputError("tune needs a promise to keep", "write serving.slo: {ttft: 1 s, tpot: 50 ms}");
  if (job.isolate) throw config::InputError("tune chooses both sides: isolate leaves one out");
  if (moments_of(job.load, job.seed).rate_per_s <= 0)
    throw config::InputError("tune needs requests that come at a rate", "write for example arrivals: {poisson: 6 /s}");
  return Tuning(job).run(progress);
}

}  // namespace rehearse::sim
