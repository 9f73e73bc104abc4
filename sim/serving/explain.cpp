#include "sim/serving/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/serving/deployment.hpp"
#include "sim/serving/goodput.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/router.hpp"
#include "sim/serving/transfer_lane.hpp"
#include "workloads/names.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

struct Change {
  std::string key, value;
  Node document;
};

class Changes {
 public:
  Changes(const Node& document, const ServingJob& job) : document_(document), job_(job) {}

  std::vector<Change> all() && {
    for (const Pool& pool : job_.pools) {
      batches(pool);
      attention(pool);
      cache(pool);
      if (job_.model.moe) experts(pool);
      layout(pool);
    }
    if (document_.find_path("moe.routing")) changes_.push_back({"moe.routing", "balanced", document_.without("moe")});
    if (job_.apart()) transfer();
    routers();
    change_sides();
    return std::move(changes_);
  }
  std::vector<Change> other_sides() && {
    change_sides();
    return std::move(changes_);
  }

 private:
  [[nodiscard]] Node serving() const { return document_.at("serving"); }
  [[nodiscard]] Node pool_node(const Pool& pool) const { return serving().at("pools").at(pool.name); }

  void add(std::string key, std::string value, const Node& its_serving) {
    Node document = document_;
    document.set_child("serving", its_serving);
    changes_.push_back({std::move(key), std::move(value), std::move(document)});
  }
  void add_pool(const Pool& pool, const std::string& key, const std::string& value, const Node& changed) {
    Node pools = serving().at("pools"), its_serving = serving();
    pools.set_child(pool.name, changed);
    its_serving.set_child("pools", pools);
    add(pool.name + '.' + key, value, its_serving);
  }

  template <class Choice>
  void others(const Pool& pool, const std::string& key, const config::Names<Choice>& names, Choice now) {
    for (const std::string& word : names.words()) {
      if (word != names.of(now)) with(pool, key, word);
    }
  }
  void with(const Pool& pool, const std::string& key, const std::string& value) {
    Node changed = pool_node(pool);
    changed.set(key, value);
    add_pool(pool, key, value, changed);
  }

  void batches(const Pool& pool) {
    others(pool, "batching", batching_names(), pool.habits.batching);
    with(pool, "chunked_prefill", pool.habits.chunked_prefill ? "false" : "true");
    if (pool.role != Role::prefill) with(pool, "graphs", pool.habits.captured > 0 ? "false" : "true");
    speculation(pool);
    for (const int tokens : {pool.habits.tokens / 2, pool.habits.tokens * 2}) {
      if (tokens > 0) with(pool, "limits.tokens", std::to_string(tokens));
    }
  }

  void speculation(const Pool& pool) {
    const int tried = pool.speculation.tokens;
    if (tried == 0) return;
    add_pool(pool, "speculative", "none", pool_node(pool).without("speculative"));
    for (const int tokens : {tried / 2, tried * 2}) {
      if (tokens > 0) with(pool, "speculative.tokens", std::to_string(tokens));
    }
  }

  // As checkpoints usually have it, where the pool's is another one.
  void attention(const Pool& pool) {
    workloads::InstancePlan usual = pool.plan;
    usual.precision.attention = {};
    const workloads::ServingPrecision precision = attention_precision(usual);
    if (precision == attention_precision(pool.plan)) return;
    Node changed = pool_node(pool);
    changed.set_child("precision", changed.at("precision").without("attention"));
    add_pool(pool, "precision.attention", std::string(name_of(precision.weights)), changed);
  }

  void cache(const Pool& pool) {
    if (pool.role != Role::prefill && pool.habits.batching != Batching::fixed)
      others(pool, "overflow", overflow_names(), pool.habits.overflow);
    const std::string now(name_of(pool.plan.precision.kv));
    for (const char* format : {"bf16", "fp8"}) {
      if (now != format) with(pool, "precision.kv", format);
    }
    if (pool.prefix_cache || !job_.load.trace_note.empty()) prefixes(pool);
    if (!job_.apart()) return;
    others(pool, "kv.layout", layout_names(), pool.habits.layout);
    for (const int page : {16, 64}) {
      if (page != pool.habits.page) with(pool, "kv.page", std::to_string(page));
    }
  }

  // A router that looks for what is kept gives way with it to one that looks at the same things otherwise.
  void prefixes(const Pool& pool) {
    const bool decodes = pool.role == Role::decode;
    Node changed = pool_node(pool), pools = serving().at("pools"), its_serving = serving();
    changed.set("prefix_cache", pool.prefix_cache ? "false" : "true");
    pools.set_child(pool.name, changed);
    its_serving.set_child("pools", pools);
    std::string value = pool.prefix_cache ? "false" : "true";
    if (pool.prefix_cache && RouterRegistry::get(decodes ? job_.decode_router : job_.prompt_router).finds_prefixes()) {
      const char* instead = decodes ? "least-kv" : "shortest-wait";
      its_serving.set(decodes ? "router.decode" : "router.prefill", instead);
      value += fmt::format(" (router {})", instead);
    }
    add(pool.name + ".prefix_cache", value, its_serving);
  }

  void experts(const Pool& pool) {
    with(pool, "moe.overlap", pool.plan.overlaps ? "false" : "true");
    others(pool, "moe.dispatcher", workloads::dispatchers, pool.plan.dispatcher);
    if (pool.plan.routing && pool.plan.ep > 1) with(pool, "moe.redundant", pool.plan.redundant > 0 ? "0" : std::to_string(pool.plan.ep));
  }

  // On the same number of GPUs.
  void layout(const Pool& pool) {
    if (job_.apart() && pool.instances > 1 && pool.plan.gpus() < job_.parts[pool.part].cluster.gpus_per_node)
      with(pool, "place", pool.spread ? "pack" : "spread");
    const auto resized = [&](int tp, int instances) {
      Node changed = pool_node(pool);
      changed.set("parallel.tp", std::to_string(tp));
      changed.set("instances", std::to_string(instances));
      if (pool.plan.ep > 1) changed.set("parallel.ep", std::to_string(tp * pool.plan.dp));
      add_pool(pool, "parallel.tp", fmt::format("{} ({} instances)", tp, instances), changed);
    };
    if (pool.plan.tp % 2 == 0) resized(pool.plan.tp / 2, pool.instances * 2);
    if (pool.instances % 2 == 0) resized(pool.plan.tp * 2, pool.instances / 2);
  }

  void transfer() {
    const TransferSpec& now = job_.transfer;
    const auto with_transfer = [&](const char* key, const char* value) {
      Node its_serving = serving();
      its_serving.set(fmt::format("transfer.{}", key), value);
      add(fmt::format("transfer.{}", key), value, its_serving);
    };
    for (const std::string& mode : transfer_mode_names().words()) {
      if (mode != transfer_mode_names().of(now.mode)) with_transfer("mode", mode.c_str());
    }
    with_transfer("path", now.path == TransferPath::gpu_direct ? "host-staged" : "gpu-direct");
    const auto takes_kernels = [](const KvAlignmentWork& work) { return work.sender_bytes_per_token + work.receiver_bytes_per_token > 0; };
    const bool aligned = std::ranges::any_of(transfer_lane(job_, 0, job_.pools.size() - 1).alignment, takes_kernels);
    for (const std::string& at : align_names().words()) {
      if (aligned && at != align_names().of(now.align) && at != "host") with_transfer("align", at.c_str());
    }
    with_transfer("reserve", now.reserves_first ? "on-pull" : "before-prefill");
    with_transfer("first_token", now.prefill_answers_first ? "decode" : "prefill");
  }

  // Whether a side has caches of prompts to look into.
  [[nodiscard]] bool keeps(bool decoding) const {
    return std::ranges::any_of(job_.pools, [&](const Pool& pool) { return pool.prefix_cache && (pool.role == Role::decode) == decoding; });
  }

  [[nodiscard]] bool divides(bool decoding) const {
    return std::ranges::any_of(job_.pools,
                               [&](const Pool& pool) { return pool.longest_prompt > 0 && (pool.role == Role::decode) == decoding; });
  }

  void routers() {
    const auto of_role = [&](const char* role, const std::string& now) {
      for (const std::string& name : RouterRegistry::names()) {
        if (name == now || (RouterRegistry::get(name).finds_prefixes() && !keeps(*role == 'd'))) continue;
        if (RouterRegistry::get(name).goes_by() == GoesBy::lengths && !divides(*role == 'd')) continue;
        Node its_serving = serving();
        its_serving.set(fmt::format("router.{}", role), name);
        add(fmt::format("router.{}", role), name, its_serving);
      }
    };
    int prompts = 0, decoding = 0;
    for (const Pool& pool : job_.pools) (pool.role == Role::decode ? decoding : prompts) += pool.instances;
    if (prompts > 1) of_role("prefill", job_.prompt_router);
    if (decoding > 1) of_role("decode", job_.decode_router);
  }

  [[nodiscard]] static Node as(const Node& pool, const char* role, int instances) {
    Node changed = pool;
    changed.set("role", role);
    changed.set("instances", std::to_string(instances));
    return changed;
  }

  void change_sides() {
    if (job_.isolate) return;
    if (job_.apart()) {
      const std::size_t before = changes_.size();
      if (job_.pools.size() == 2 && job_.pools.front().part == job_.pools.back().part) together();
      if (changes_.size() == before) each_of_both();
    }
    if (job_.pools.size() == 1) apart();
  }

  // All GPUs of one kind as instances of both, as either side has them.
  void together() {
    std::string before;
    for (const Pool& pool : job_.pools) {
      const int instances = job_.gpus() / pool.plan.gpus();
      if (instances * pool.plan.gpus() != job_.gpus()) continue;
      Node pools, its_serving = serving().without("transfer");
      pools.set_child("both", as(pool_node(pool), "both", instances));
      if (pools.to_yaml() == before) continue;  // the two sides are alike
      before = pools.to_yaml();
      its_serving.set_child("pools", pools);
      add("together", fmt::format("{} instances as {}", instances, pool.name), its_serving);
    }
  }

  // Where one plan cannot take all GPUs (several kinds, pools or sizes): every instance as it is, for both.
  void each_of_both() {
    Node pools, its_serving = serving().without("transfer");
    for (const Pool& pool : job_.pools) pools.set_child(pool.name, as(pool_node(pool), "both", pool.instances));
    its_serving.set_child("pools", pools);
    add("together", "every pool for both", its_serving);
  }

  // So many of the instances for prompts, the others for decoding: at most seven ways to cut.
  void apart() {
    constexpr int cuts = 8;
    const Pool& pool = job_.pools.front();
    int before = 0;
    for (int cut = 1; cut < cuts; ++cut) {
      const int prefill = pool.instances * cut / cuts;
      if (prefill == before || prefill < 1) continue;
      before = prefill;
      Node pools, its_serving = serving();
      pools.set_child("prefill", as(pool_node(pool), "prefill", prefill));
      pools.set_child("decode", as(pool_node(pool), "decode", pool.instances - prefill));
      its_serving.set_child("pools", pools);
      add("apart", fmt::format("{} prefill, {} decode", prefill, pool.instances - prefill), its_serving);
    }
  }

  const Node& document_;
  const ServingJob& job_;
  std::vector<Change> changes_;
};

ServingEffect effect_of(const Change& change, const std::string& name, bool with_goodput) {
  ServingEffect effect{.key = change.key, .value = change.value};
  try {
    const ServingJob job = read_serving_job(change.document, name);
    const Deployment deployment = deploy(job);
    effect.refused = deployment.misfit;
    if (!effect.refused.empty()) return effect;
    const ServingSetup setup = setup_of(job, deployment);
    effect.simulated = result_of(job, setup, simulate_serving(setup));
    if (with_goodput && has_goodput(job)) effect.simulated->goodput_per_s = goodput_of(job, deployment, [](double) {});
  } catch (const config::InputError& error) {
    effect.refused = error.message();
  }
  return effect;
}

// Of a list of methods: whether it has the job as it is, and whether the other.
struct WantedMethods {
  bool now = false, other = false;
};
WantedMethods wanted_methods(const std::string& list, const std::string& now) {
  WantedMethods wanted;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    if (name != "apart" && name != "together")
      throw config::InputError(fmt::format("--methods: {} is no method of a job that serves", config::shown(name)),
                               "apart, together, or both");
    bool& which = name == now ? wanted.now : wanted.other;
    if (std::exchange(which, true)) throw config::InputError(fmt::format("--methods names {} twice", name));
  }
  return wanted;
}

}  // namespace

std::vector<ServingEffect> serving_methods(const Node& document, const ServingJob& job, const std::string& list,
                                           const std::function<void(double)>& progress) {
  const std::string now = job.apart() ? "apart" : "together";
  const WantedMethods wanted = wanted_methods(list, now);
  std::vector<Change> changes;
  if (wanted.now) changes.push_back({now, "as the job is", document});
  if (wanted.other) {
    std::vector<Change> others = Changes(document, job).other_sides();
    if (others.empty()) {
      throw config::InputError(job.isolate ? "--methods: a side alone (isolate) is neither apart nor together"
                                           : "--methods: an instance, or pools of both that differ, are divided by hand",
                               "write pools of role prefill and of role decode");
    }
    std::ranges::move(others, std::back_inserter(changes));
  }
  std::vector<ServingEffect> methods;
  for (const Change& change : changes) {
    methods.push_back(effect_of(change, job.name, true));
    progress(static_cast<double>(methods.size()) / static_cast<double>(changes.size()));
  }
  return methods;
}

std::vector<ServingEffect> serving_effects(const Node& document, const ServingJob& job, bool with_goodput,
                                           const std::function<void(double)>& progress) {
  const std::vector<Change> changes = Changes(document, job).all();
  std::vector<ServingEffect> effects;
  for (const Change& change : changes) {
    effects.push_back(effect_of(change, job.name, with_goodput));
    progress(static_cast<double>(effects.size()) / static_cast<double>(changes.size()));
  }
  return effects;
}

}  // namespace rehearse::sim
