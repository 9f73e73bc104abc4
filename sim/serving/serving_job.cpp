#include "sim/serving/serving_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "config/quantity.hpp"
#include "config/yaml_text.hpp"
#include "sim/job/limits.hpp"
#include "sim/job/resolved_text.hpp"
#include "sim/job/workload_keys.hpp"
#include "sim/serving/capacity.hpp"
#include "sim/serving/cluster_parts.hpp"
#include "sim/serving/expert_routing.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/resolved_serving.hpp"
#include "sim/serving/router.hpp"
#include "sim/serving/service_faults.hpp"
#include "sim/serving/service_history.hpp"
#include "sim/serving/serving_checks.hpp"
#include "sim/serving/tune_keys.hpp"
#include "workloads/names.hpp"
#include "workloads/serving/cache_bytes.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Node;
using workloads::DType;

// What measured cases note beside a model; not part of it.
constexpr const char* bookkeeping[] = {"params_b", "params_active_b", "params_published_b", "cases"};

// A document on its way to a job.
struct Reading {
  ServingJob job;
  Node resolved;
  std::shared_ptr<const workloads::ExpertPlan> routing;  // of tokens to experts
  struct Engine {
    std::shared_ptr<const Software> software;
    EngineHabits habits;
  };
  std::map<std::string, Engine> engines;  // by what they are: files of one name may stand in several folders
};

// What is kept of a sequence is counted in pages of keys and values.
void refuse_states_alone(const Node& where, const workloads::Model& model) {
  if (caching_layers(model).attention > 0) return;
  where.fail(fmt::format("model {} has no layer with attention: it is trained here, not served", config::shown(model.name)));
}

// Another state would be kept beside that of the model.
void refuse_draft(const Node& draft, const workloads::Model& model) {
  if (model.mixer) draft.fail(fmt::format("model {} has mixers: it proposes no tokens here", config::shown(model.name)));
  refuse_states_alone(draft, model);
}

void read_model_of(Reading& reading, const Node& node, const Node& models) {
  Part part = find_part(node, model_part, models);
  for (const char* key : bookkeeping) {
    if (models) part.node = part.node.without(key);
  }
  reading.job.model = workloads::read_model(part.node, part.name);
  if (reading.job.model.heads == 0 || reading.job.model.vocab == 0) node.fail("a model that is served has attention and a vocabulary");
  refuse_states_alone(node, reading.job.model);
  reading.resolved.set_child("model", named({part.name, workloads::model_keys().write(reading.job.model)}));
}

const Reading::Engine& engine_of(Reading& reading, const Node& node) {
  const Part part = find_part(node, software_part);
  const auto habits = part.node.find("serving");
  if (!habits) {
    node.fail(fmt::format("software {} does not serve: its file has no section 'serving'", config::shown(part.name)),
              "write for example software: vllm");
  }
  const auto [found, added] = reading.engines.try_emplace(config::one_line(named(part)));
  if (added) found->second = {std::make_shared<const Software>(read_software(part.node, part.name)), mapping(engine_keys()).read(*habits)};
  const std::vector<std::string> known = KvAlignmentRegistry::names();
  for (const std::string& name : found->second.habits.cannot_align) {
    if (std::ranges::find(known, name) == known.end())
      habits->at("cannot_align").fail("no difference between caches is called " + config::shown(name), config::suggestion(name, known));
  }
  if (found->second.habits.grouped_heads > 1 && found->second.habits.scalar_share <= 0) {
    habits->at("grouped_heads")
        .fail("with grouped_heads above 1 scalar_share is needed: what kernels reach that read for every query head");
  }
  return found->second;
}

EngineHabits habits_of(const PoolDocument& given, EngineHabits habits) {
  if (given.batching) habits.batching = *given.batching;
  if (given.chunked_prefill) habits.chunked_prefill = *given.chunked_prefill;
  habits.eager = given.graphs && !*given.graphs;
  if (habits.eager) habits.captured = 0;
  if (given.memory_fraction) habits.memory_fraction = *given.memory_fraction;
  if (given.page) habits.page = *given.page;
  if (given.layout) habits.layout = *given.layout;
  if (given.overflow) habits.overflow = *given.overflow;
  return habits;
}

std::size_t part_of(const ServingJob& job, const PoolDocument& given, const Node& node) {
  if (given.part.empty()) {
    if (job.parts.size() > 1) node.fail("the cluster has parts: a pool needs one of them", "write part: " + job.parts.front().name);
    return 0;
  }
  if (job.parts.front().name.empty()) node.at("part").fail("the cluster has no parts", "leave part out, or write cluster: {parts: ...}");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < job.parts.size(); ++i) {
    if (job.parts[i].name == given.part) return i;
    names.push_back(job.parts[i].name);
  }
  node.at("part").fail("no part " + config::shown(given.part) + " in the cluster", config::suggestion(given.part, names));
}

void check_plan(const ServingJob& job, const Pool& pool, const Node& node) {
  if (const auto refusal = plan_refusal(job, pool)) {
    (node.find("parallel") ? node.at("parallel") : node).fail(refusal->why, refusal->hint);
  }
}

// Swapping is for sequences that grow.
void check_overflow(const Pool& pool, const Node& node) {
  if (pool.habits.overflow != Overflow::swap || !node.find("overflow")) return;
  if (pool.role == Role::prefill)
    node.at("overflow").fail("a pool of role prefill has no answers that outgrow its pages: nothing is swapped");
  if (pool.habits.batching == Batching::fixed)
    node.at("overflow")
        .fail("static batches take the room of whole answers: nothing is swapped", "write overflow: reserve, or another batching");
}

// Blocks are whole pages, and do not leave the GPU. vLLM keeps no blocks of models with mixers by default (is_prefix_caching_supported of
// vllm/config/model.py): a state is that behind a prompt's last token.
void check_prefix_cache(const Pool& pool, const workloads::Model& model, const Node& node) {
  if (model.mixer) node.at("prefix_cache").fail("states of mixers are not kept by blocks of prompts: such caches are not simulated");
  constexpr int block = workloads::PromptBlocks::usual_tokens;
  if (block % pool.habits.page != 0)
    node.at("prefix_cache").fail(fmt::format("a block of {} tokens is no number of pages of {}", block, pool.habits.page));
  if (pool.habits.overflow == Overflow::swap)
    node.at("prefix_cache")
        .fail("with overflow: swap pages leave for the host's memory, and others may use them", "write overflow: recompute");
}

// Tokens that are proposed by a rule, by heads of the model or by another one, and tried together.
void read_speculation(Pool& pool, const SpeculationDocument& given, const ServingJob& job, const Node& node) {
  if (pool.role == Role::prefill) node.fail_at_key("a pool of role prefill decodes nothing");
  if (pool.habits.overflow != Overflow::reserve || pool.habits.batching == Batching::fixed)
    node.fail_at_key("with speculative a cache takes the room of its whole answer, and batches are open",
                     "write overflow: reserve, and batching: continuous or prefill-first");
  if (pool.plan.pp > 1) node.fail_at_key(fmt::format("speculative needs all layers on one stage, not pp {}", pool.plan.pp));
  pool.speculation = {given.tokens, given.acceptance};
  if (!given.draft) return;
  const Node draft = node.at("draft");
  if (pool.role == Role::decode)
    draft.fail("a model that proposes tokens needs the cache of the prompt, which another instance computes",
               "leave draft out: tokens are proposed by a rule or by heads of the model");
  const Part part = find_part(draft, model_part);
  pool.draft = std::make_shared<const workloads::Model>(workloads::read_model(part.node, part.name));
  refuse_draft(draft, *pool.draft);
  if (pool.draft->vocab != job.model.vocab)
    draft.fail(fmt::format("a model that proposes tokens has the same vocabulary: {} has {}, {} has {}", pool.draft->name,
                           pool.draft->vocab, job.model.name, job.model.vocab));
}

// Integers are counted as floats of their width (pool_keys.cpp). bf16 of states stands in every resolved job.
void check_formats(ServingJob& job, const std::string& who, const Node& precision, const workloads::ServingPrecision& given) {
  if (!job.model.mixer && given.state != DType::bf16)
    precision.at("state").fail(fmt::format("model {} has no mixers, whose states this is of", config::shown(job.model.name)));
  std::set<std::string> named;
  for (const std::string& key : precision.keys()) named.insert(precision.at(key).as_string());
  for (const auto& [integers, floats] : {std::pair{"int8", "fp8"}, std::pair{"int4", "fp4"}}) {
    const std::string note = fmt::format("{}: {} counts as {}, which is as wide", who, integers, floats);
    if (named.contains(integers) && std::ranges::find(job.notes, note) == job.notes.end()) job.notes.push_back(note);
  }
}

// Of a plan that can be: states make pages larger.
void check_kv_tokens(const Pool& pool, const Node& node) {
  const int page = page_tokens(pool.plan, pool.habits, pool.speculation.tokens);
  if (pool.kv_tokens > 0 && pool.kv_tokens < page)
    node.at("kv_tokens").fail(fmt::format("a cache of {} tokens has no page of {}", pool.kv_tokens, page));
}

// What a pool takes from its document as it stands there.
Pool pool_as_given(const PoolDocument& given, const std::string& name) {
  Pool pool;
  pool.name = name;
  pool.role = given.role;
  pool.instances = given.instances;
  pool.spread = given.spread;
  pool.kv_tokens = given.kv_tokens;
  pool.prefix_cache = given.prefix_cache;
  pool.longest_prompt = given.longest_prompt;
  pool.price_per_s = given.price_per_s;
  pool.limits = given.limits;
  pool.wanted = given.precision.compute;
  pool.plan.tp = given.parallel.tp;
  pool.plan.pp = given.parallel.pp;
  pool.plan.dp = given.parallel.dp;
  pool.plan.ep = std::max(1, given.parallel.ep);
  pool.plan.precision = given.precision;
  pool.plan.dispatcher = given.moe.dispatcher;
  pool.plan.redundant = given.moe.redundant;
  pool.plan.overlaps = given.moe.overlap;
  return pool;
}

// What its GPU and its role make of that, with a note where it is something else.
void settle(ServingJob& job, Pool& pool, const PoolDocument& given) {
  const Gpu& gpu = job.parts[pool.part].gpu;
  const auto note = [&](const std::string& text) { job.notes.push_back(fmt::format("pool {}: {}", pool.name, text)); };
  if (settle_limits(pool, gpu))
    note(fmt::format("on {} its engine takes at most {} sequences at once and {} tokens a pass", gpu.name, pool.habits.sequences,
                     pool.habits.tokens));
  if (!settle_precision(pool, gpu))
    note(fmt::format("{} has no products in {}: they are computed in {}, weights keep their width", gpu.name, name_of(pool.wanted),
                     name_of(pool.plan.precision.compute)));
  if (given.graphs && pool.role == Role::prefill) note("graphs change nothing, since it decodes nothing");
}

Pool read_pool(Reading& reading, const std::string& name, const Node& node, const Node& document) {
  const PoolDocument given = mapping(pool_keys()).read(node);
  ServingJob& job = reading.job;
  Pool pool = pool_as_given(given, name);
  pool.part = part_of(job, given, node);
  const Reading::Engine& engine = engine_of(reading, given.software ? given.software : document.at("software"));
  pool.software = engine.software;
  if (given.graphs && *given.graphs && engine.habits.captured == 0)
    node.at("graphs").fail(fmt::format("software {} replays no graphs", config::shown(engine.software->name)));
  pool.habits = habits_of(given, engine.habits);
  pool.usual_limits = {engine.habits.sequences, engine.habits.tokens};
  check_overflow(pool, node);
  if (pool.prefix_cache) check_prefix_cache(pool, job.model, node);
  pool.plan.model = job.model;
  pool.plan.routing = reading.routing;
  if (node.find("moe") && !job.model.moe) node.at("moe").fail_at_key("moe is for models with experts");
  settle(job, pool, given);
  if (const auto precision = node.find("precision")) check_formats(job, "pool " + pool.name, *precision, given.precision);
  if (const auto speculative = node.find("speculative")) read_speculation(pool, given.speculative, job, *speculative);
  check_plan(job, pool, node);
  check_kv_tokens(pool, node);
  note_states(job, pool);
  return pool;
}

void read_pools(Reading& reading, const Node& serving, const Node& document) {
  const Node pools = serving.at("pools");
  for (const std::string& name : pools.keys()) reading.job.pools.push_back(read_pool(reading, name, pools.at(name), document));
  if (reading.job.pools.empty()) pools.fail_at_key("a deployment needs a pool", "write pools: {all: {role: both}}");
  std::ranges::stable_sort(reading.job.pools, {}, &Pool::role);
}

void read_routers(ServingJob& job, const Node& node) {
  node.allow_keys({"prefill", "decode"});
  const auto none = [&](Role role) { return std::ranges::none_of(job.pools, [&](const Pool& pool) { return pool.role == role; }); };
  if (node.find("decode") && none(Role::decode)) job.notes.push_back("router.decode chooses nothing: no pool decodes apart");
  if (node.find("prefill") && none(Role::prefill) && none(Role::both))
    job.notes.push_back("router.prefill chooses nothing: no pool computes prompts");
  if (const auto prefill = node.find("prefill")) job.prompt_router = prefill->as_choice(RouterRegistry::names());
  if (const auto decode = node.find("decode")) job.decode_router = decode->as_choice(RouterRegistry::names());
}

void read_simulation(ServingJob& job, const Node& node) {
  node.allow_keys({"seed", "granularity", "faults"});
  if (const auto seed = node.find("seed")) job.seed = static_cast<std::uint64_t>(seed->as_int(0, largest_seed));
  if (const auto granularity = node.find("granularity")) job.by_layers = granularity->as_choice({"iteration", "layer"}) == "layer";
  if (const auto faults = node.find("faults")) {
    for (const Node& item : faults->items()) job.faults.push_back(read_service_fault(item, job));
  }
}

// Engines sort logits for loads alone that draw from the likeliest.
void settle_sampling(ServingJob& job) {
  if (!job.load.truncated) {
    for (Pool& pool : job.pools) pool.habits.sort_s = 0;
  } else if (std::ranges::all_of(job.pools, [](const Pool& pool) { return pool.habits.sort_s <= 0; })) {
    job.notes.emplace_back("load.sampling changes nothing: no engine here takes time for it (sort of its stack)");
  }
}

void read_serving(Reading& reading, const Node& document) {
  const Node serving = document.at("serving");
  serving.allow_keys({"pools", "transfer", "router", "load", "slo", "isolate", "recovery", "reload"});
  ServingJob& job = reading.job;
  read_pools(reading, serving, document);
  if (const auto isolate = serving.find("isolate")) job.isolate = role_names().read(*isolate);
  check_roles(job, serving);
  check_size(job, serving.at("pools"));
  note_wide_between(job);
  if (const auto transfer = serving.find("transfer")) {
    if (job.pools.front().role == Role::both) transfer->fail_at_key("nothing is transferred where the same instances do both");
    job.transfer = mapping(transfer_keys()).read(*transfer);
    if (const auto path = transfer->find("path")) check_path(job, *path);
    if (const auto align = transfer->find("align")) check_align(job, *align);
    if (job.model.mixer && job.transfer.mode != TransferMode::after_prefill)
      transfer->at("mode").fail("states of mixers are whole when their prompt is, and leave with all of its cache",
                                "write mode: after-prefill");
  }
  check_alignable(job, serving);
  if (const auto router = serving.find("router")) read_routers(job, *router);
  job.load = read_load(serving.at("load"), std::ranges::any_of(job.pools, &Pool::prefix_cache));
  settle_sampling(job);
  check_blocks(job, serving);
  check_prefix_router(job, serving);
  check_lengths(job, serving);
  if (!job.load.trace_note.empty()) job.notes.push_back(job.load.trace_note);
  if (const auto slo = serving.find("slo")) job.promise = mapping(promise_keys()).read(*slo);
  if (const auto recovery = serving.find("recovery")) job.recovery_s = recovery->as_quantity(Dimension::time);
  if (const auto reload = serving.find("reload")) read_reload(job, *reload);
}

void read_tune(ServingJob& job, const Node& tune) {
  job.tune = read_serving_tune(tune, job);
  const auto given = tune.find("precision");
  if (!given) return;
  const std::vector<Node> all = given->is_sequence() ? given->items() : std::vector<Node>{*given};
  for (std::size_t i = 0; i < all.size(); ++i) check_formats(job, "tune", all[i], job.tune->precisions[i]);
}

// Instances that send between nodes, beside caches that are handed over.
bool goes_by_layers(const ServingJob& job) {
  return job.apart() && std::ranges::any_of(job.pools, [&](const Pool& pool) {
           return pool.plan.pp == 1 && pool.plan.gpus() > job.parts[pool.part].cluster.domain_gpus();
         });
}

void resolve(Reading& reading, const Node& document) {
  reading.resolved.set_child("serving", resolved_serving(document.at("serving")));
  if (reading.routing) reading.resolved.set_child("moe", served_experts_keys().write(*reading.routing));
  if (const auto given = document.find("simulation")) reading.resolved.set_child("simulation", *given);
  if (document.find("software")) reading.resolved.set_child("software", named(find_part(document.at("software"), software_part)));
  const ResolvedText text(reading.job.name, [node = reading.resolved] { return node; });
  reading.job.resolved_yaml = text.to_yaml();
  reading.job.input_hash = text.hash();
}

}  // namespace

int ServingJob::gpus() const {
  int sum = 0;
  for (const Pool& pool : pools) sum += pool.gpus();
  return sum;
}

bool settle_precision(Pool& pool, const Gpu& gpu) {
  workloads::ServingPrecision& precision = pool.plan.precision;
  const DType in_16_bits = gpu.peak_flops_per_s.contains(DType::bf16) ? DType::bf16 : DType::fp16;
  if (precision.attention && bytes_of(*precision.attention) > 1) precision.attention = in_16_bits;
  precision.compute = pool.wanted;
  if (gpu.peak_flops_per_s.contains(precision.compute)) return true;
  precision.compute = in_16_bits;
  return false;
}

workloads::InstancePlan draft_plan(const Pool& pool) {
  workloads::InstancePlan plan = pool.plan;
  plan.model = *pool.draft;
  plan.ep = plan.model.moe && plan.dp > 1 ? plan.stage_ranks() : 1;
  plan.redundant = 0;
  plan.routing = nullptr;
  plan.overlaps = false;
  return plan;
}

ServingJob read_serving_job(const Node& document, const std::string& name, const Node& models) {
  document.allow_keys({"format", "name", "model", "cluster", "software", "serving", "tune", "simulation", "faults", "moe"});
  if (const auto format = document.find("format")) static_cast<void>(format->as_int(1, 1));
  Reading reading;
  reading.job.name = document.find("name") ? document.at("name").as_string() : name;
  reading.resolved.set_child("name", Node::scalar(reading.job.name, true));
  read_model_of(reading, document.at("model"), models);
  read_parts(reading.job, reading.resolved, document.at("cluster"));
  if (const auto moe = document.find("moe")) reading.routing = read_expert_routing(*moe, reading.job.model);
  read_serving(reading, document);
  note_expert_routing(reading.job);
  if (const auto simulation = document.find("simulation")) read_simulation(reading.job, *simulation);
  if (const auto faults = document.find("faults")) {
    reading.job.scenario = FaultScenario::read(*faults, service_fault_context(reading.job));
    reading.resolved.set_child("faults", reading.job.scenario->resolved());
  }
  if (const auto tune = document.find("tune")) read_tune(reading.job, *tune);
  if (reading.job.by_layers && !goes_by_layers(reading.job))
    reading.job.notes.push_back(
        "granularity: layer changes nothing: no caches are handed over, or no instance has layers on one stage over several nodes");
  resolve(reading, document);
  return std::move(reading.job);
}

}  // namespace rehearse::sim
