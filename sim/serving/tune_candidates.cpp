#include "sim/serving/tune_candidates.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/promised_times.hpp"
#include "sim/serving/tune_keys.hpp"

namespace rehearse::sim {
namespace {

// The pools of the job that new ones of this role are made from: those of the role, else those of the first one's; of these the ones that
// stand on the part, else all.
std::vector<const Pool*> templates_of(const ServingJob& job, Role role, std::size_t part) {
  const bool has_role = std::ranges::find(job.pools, role, &Pool::role) != job.pools.end();
  std::vector<const Pool*> all, here;
  for (const Pool& pool : job.pools) {
    if (pool.role != (has_role ? role : job.pools.front().role)) continue;
    all.push_back(&pool);
    if (pool.part == part) here.push_back(&pool);
  }
  return here.empty() ? all : here;
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
    for (const Pool* like : templates_of(job_, role, part)) {
      walks_.clear();
      add_plans(*like, role, part, out);
    }
    return out;
  }

 private:
  void add_plans(const Pool& like, Role role, std::size_t part, Candidates& out) {
    for (const int tp : tensor_degrees(spec_.tp, job_.parts[part].cluster)) {
      for (const int pp : or_one(spec_.pp, 1)) {
        for (const int dp : or_one(spec_.dp, 1)) {
          for (const int ep : or_one(spec_.ep, like.plan.ep > 1 || dp > 1 ? tp * dp : 1)) {
            Pool pool = like;
            pool.role = role;
            pool.name = like.role == role ? like.name : role_name(role);
            pool.like = like.name;
            pool.part = part;
            pool.instances = 1;
            pool.kv_tokens = 0;
            pool.longest_prompt = 0;
            pool.price_per_s = spec_.price_per_s[part];
            pool.plan.tp = tp;
            pool.plan.pp = pp;
            pool.plan.dp = dp;
            pool.plan.ep = ep;
            static_cast<void>(settle_limits(pool, job_.parts[part].gpu));
            add_formats(pool, out);
          }
        }
      }
    }
  }

  void add_formats(Pool pool, Candidates& out) {
    std::vector<workloads::ServingPrecision> formats = spec_.precisions;
    if (formats.empty()) {
      workloads::ServingPrecision own = pool.plan.precision;
      own.compute = pool.wanted;
      formats.push_back(own);
    }
    const EngineHabits usual = pool.habits;
    for (const workloads::ServingPrecision& precision : formats) {
      pool.plan.precision = precision;
      pool.wanted = precision.compute;
      for (const int sequences : or_one(spec_.sequences, usual.sequences)) {
        for (const int tokens : or_one(spec_.tokens, usual.tokens)) {
          pool.habits.sequences = sequences;
          pool.habits.tokens = tokens;
          add(pool, out);
        }
      }
    }
  }

  static std::string role_name(Role role) { return role == Role::both ? "all" : role == Role::prefill ? "prefill" : "decode"; }

  void add(Pool pool, Candidates& into) {
    if (pool.plan.gpus() > spec_.inventory[pool.part]) return;
    ++counts_.plans;
    static_cast<void>(settle_precision(pool, job_.parts[pool.part].gpu));
    const std::shared_ptr<const PoolDeployment> priced = priced_as(pool);
    if (!priced) {
      ++counts_.refused;
      return;
    }
    PoolCandidate candidate;
    candidate.pool = std::make_unique<const Pool>(std::move(pool));
    candidate.deployment = deploy_pool(job_, *candidate.pool, priced);
    candidate.deployment.walks = walks_of(*candidate.pool);
    const InstanceRules& rules = candidate.deployment.rules;
    // A prompt of the 99th percentile fits, and where it is decoded a mean answer behind it.
    const double longest = load_.input_at(0.99) + (rules.role == Role::prefill ? 0 : load_.output);
    if (static_cast<double>(rules.usable_pages() * rules.page - rules.state_tokens()) < longest) {
      ++counts_.unfit;
      return;
    }
    const int gpus = candidate.pool->plan.gpus();
    candidate.side = {candidate.pool->part, gpus, gpus * candidate.pool->price_per_s};
    into.push_back(std::move(candidate));
  }

  // Of one template's plans that differ in role and limits alone: what a pass costs is the same for all, and so is why there is no such
  // plan (nothing).
  [[nodiscard]] std::shared_ptr<const PoolDeployment> priced_as(const Pool& pool) {
    const PlanKey key{pool.like, pool.part, pool.plan.tp, pool.plan.pp, pool.plan.dp, pool.plan.ep, pool.plan.precision};
    const auto [at, fresh] = priced_.try_emplace(key);
    if (!fresh || plan_refusal(job_, pool)) return at->second;
    struct Owned {
      Pool pool;
      PoolDeployment deployment;
    };
    const auto owned = std::make_shared<Owned>(Owned{pool, {}});
    owned->deployment = deploy_pool(job_, owned->pool);
    return at->second = {owned, &owned->deployment};
  }

  // Plans of one template that differ in `sequences` alone have one.
  std::shared_ptr<PassWalks> walks_of(const Pool& pool) {
    std::shared_ptr<PassWalks>& walks =
        walks_[{pool.plan.tp, pool.plan.pp, pool.plan.dp, pool.plan.ep, pool.habits.tokens, pool.plan.precision}];
    if (!walks) walks = std::make_shared<PassWalks>();
    return walks;
  }

  const ServingJob& job_;
  const ServingTuneSpec& spec_;
  const LoadMoments& load_;
  ServingTuning& counts_;
  using PlanKey = std::tuple<std::string, std::size_t, int, int, int, int, workloads::ServingPrecision>;
  std::map<PlanKey, std::shared_ptr<const PoolDeployment>> priced_;
  std::map<std::tuple<int, int, int, int, int, workloads::ServingPrecision>, std::shared_ptr<PassWalks>> walks_;
};

// Where prompts alone are computed, the formula does not ask how many may decode; where they are not, what a pass takes of them; and never
// for more sequences than the cache holds. Of twins the one with room for the most sequences stands for all, of these with the first
// tokens.
void merge_twins(Candidates& candidates, const LoadMoments& load) {
  using Key = std::tuple<std::string, int, int, int, int, workloads::ServingPrecision, int, double>;
  const auto key_of = [&](const PoolCandidate& one) {
    const Pool& pool = *one.pool;
    const int tokens = pool.role == Role::decode ? 0 : pool.habits.tokens;
    const double sequences = pool.role == Role::prefill ? 0 : PoolFormula(one.deployment, load).most_sequences();
    return Key{pool.like, pool.plan.tp, pool.plan.pp, pool.plan.dp, pool.plan.ep, pool.plan.precision, tokens, sequences};
  };
  Candidates kept;
  std::map<Key, std::size_t> places;
  for (PoolCandidate& one : candidates) {
    const auto [at, fresh] = places.try_emplace(key_of(one), kept.size());
    if (fresh) {
      kept.push_back(std::move(one));
      continue;
    }
    PoolCandidate& twin = kept[at->second];
    const EngineHabits &here = one.pool->habits, &there = twin.pool->habits;
    std::vector<std::string> keys = twin.free_keys;
    const auto differ = [&](const char* key) {
      if (std::ranges::find(keys, key) == keys.end()) keys.emplace_back(key);
    };
    if (here.sequences != there.sequences) differ("sequences");
    if (here.tokens != there.tokens) differ("tokens");
    const int twins = twin.twins + 1;
    if (here.sequences > there.sequences) twin = std::move(one);
    twin.twins = twins;
    twin.free_keys = std::move(keys);
  }
  candidates = std::move(kept);
}

// What nobody has given a price costs 1 an hour, and the reader is told.
void settle_prices(const ServingJob& job, ServingTuneSpec& spec, ServingTuning& tuning) {
  constexpr double usual_per_s = 1.0 / 3600;
  std::vector<std::string> parts;
  for (std::size_t part = 0; part < spec.price_per_s.size(); ++part) {
    if (spec.price_per_s[part] > 0) continue;
    spec.price_per_s[part] = usual_per_s;
    parts.push_back(job.parts[part].name);
  }
  if (parts.empty()) return;
  const bool named = !parts.front().empty();
  tuning.notes.push_back(fmt::format("no price is given for a GPU{}: each counts as 1 an hour, so that cost is GPU hours (write {})",
                                     named ? fmt::format(" of {}", fmt::join(parts, " or ")) : "",
                                     named ? fmt::format("tune.price: {{{}: 2.5 /h}}", parts.front()) : "tune.price: 2.5 /h"));
}

}  // namespace

TuneSides::TuneSides(const ServingJob& of_job, ServingTuning& tuning, const std::function<void(double)>& progress)
    : job(of_job), spec(of_job.tune ? *of_job.tune : usual_serving_tune(of_job)), promise(of_job.promise), load(promised_moments(of_job)) {
  settle_prices(job, spec, tuning);
  Space space(job, spec, load, tuning);
  const auto plans_of = [&](Role role, std::size_t part) {
    Candidates all = space.of(role, part);
    const std::size_t found = all.size();
    merge_twins(all, load);
    tuning.twins += static_cast<int>(found - all.size());
    return all;
  };
  for (std::size_t part = 0; part < job.parts.size(); ++part) {
    together.push_back(plans_of(Role::both, part));
    prompts.push_back(plans_of(Role::prefill, part));
    decodes.push_back(plans_of(Role::decode, part));
    progress(static_cast<double>(part + 1) / static_cast<double>(job.parts.size()));
  }
}

double TuneSides::ttft_within_s() const { return promise.ttft_s > 0 ? promise.ttft_s : INFINITY; }
double TuneSides::tpot_within_s() const { return promise.tpot_s > 0 ? promise.tpot_s : INFINITY; }

std::string TuneSides::kind_of(std::size_t prompt_part, std::size_t decode_part) const {
  const std::string &one = job.parts[prompt_part].name, &other = job.parts[decode_part].name;
  if (prompt_part != decode_part) return fmt::format("apart on {} and {}", one, other);
  return one.empty() ? "apart" : "apart on " + one;
}

std::string TuneSides::kind_of(std::size_t part) const {
  const std::string& name = job.parts[part].name;
  return name.empty() ? "together" : "together on " + name;
}

Pool with_number(const PoolCandidate& candidate, int instances) {
  Pool pool = *candidate.pool;
  pool.instances = instances;
  return pool;
}

PoolsKey pools_key(const TunedDeployment& deployment) {
  PoolsKey key;
  for (const Pool& pool : deployment.pools)
    key.emplace_back(pool.role, pool.like, pool.part, pool.instances, pool.plan.tp, pool.plan.pp, pool.plan.dp, pool.plan.ep,
                     pool.plan.precision, pool.habits.sequences, pool.habits.tokens, pool.longest_prompt);
  return key;
}

void add_pool(TunedDeployment& deployment, const PoolCandidate& candidate, int instances) {
  deployment.pools.push_back(with_number(candidate, instances));
  deployment.twins = (deployment.twins + 1) * (static_cast<std::uint64_t>(candidate.twins) + 1) - 1;
  for (const std::string& key : candidate.free_keys) deployment.without_effect.push_back(fmt::format("{}.{}", candidate.pool->name, key));
}

}  // namespace rehearse::sim
