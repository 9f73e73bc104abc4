#include "sim/serving/deployment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/serving/placement.hpp"
#include "sim/serving/service_links.hpp"
#include "sim/serving/serving_checks.hpp"

namespace rehearse::sim {
namespace {

constexpr double gb = 1e9;
constexpr std::uint64_t drawing_stream = 5;  // of random numbers; arrivals, lengths and routers have others

std::string misfit_of(const PoolDeployment& pool) {
  const InstanceMemory& memory = pool.memory;
  const double given = pool.pool->kv_tokens * memory.kv_per_token;  // somebody's measured cache may be larger than what is left by formula
  if (memory.weights + given > memory.whole && given > 0)
    return fmt::format("pool {}: {} on a GPU take {:.1f} GB of weights, and {} tokens (kv_tokens) {:.1f} GB, of {:.1f} GB", pool.pool->name,
                       pool.pool->plan.model.name, memory.weights / gb, pool.pool->kv_tokens, given / gb, memory.whole / gb);
  if (pool.rules.pages > 0) return {};
  const std::string slots =
      memory.slots > 0 ? fmt::format(", {:.1f} GB for the logits of {} sequences", memory.slots / gb, pool.pool->habits.sequences) : "";
  return fmt::format(
      "pool {}: {} on a GPU take {:.1f} GB of weights, {:.1f} GB of activations{} and {:.1f} GB beside them, of {:.1f} GB: no room for a "
      "cache",
      pool.pool->name, pool.pool->plan.model.name, memory.weights / gb, memory.activations / gb, slots, memory.context / gb,
      memory.limit / gb);
}

// A page is copied by all GPUs of a replica at once, each its share, neighbours over one link where they share it. An instance has so much
// of its hosts' memory as of their GPUs.
void put_swap(InstanceRules& rules, const Pool& pool, const topology::ClusterSpec& cluster) {
  const workloads::KvBytes bytes = workloads::kv_bytes_per_token(pool.plan);
  const int page = rules.page;
  const int sharing = std::min(cluster.gpus_per_host_link, pool.plan.tp);
  rules.swap_page_s = bytes.per_gpu * page * sharing / cluster.host.effective_bytes_per_s();
  if (cluster.host_memory.bytes <= 0) return;
  const double share = cluster.host_memory.bytes * pool.plan.gpus() / cluster.gpus_per_node;
  rules.swap_pages = static_cast<std::int64_t>(share / (bytes.per_instance * page));
}

// The model that proposes tokens, on the same GPUs: weights and a cache of its own, and passes between which the host does nothing. It
// proposes the likeliest token, and what stands between two passes stands behind all of its own.
struct Draft {
  workloads::InstancePlan plan;
  EngineHabits habits;
  std::unique_ptr<const OperatorPassPrice> price;
};

std::shared_ptr<const Draft> draft_of(const Pool& pool, const ClusterPart& part) {
  if (!pool.draft) return nullptr;
  auto draft = std::make_shared<Draft>(Draft{draft_plan(pool), pool.habits, nullptr});
  draft->habits.pass_s = draft->habits.sequence_s = draft->habits.sort_s = draft->habits.between_s = 0;
  draft->price = std::make_unique<const OperatorPassPrice>(draft->plan, part.gpu, part.costs, *pool.software, part.cluster, draft->habits);
  return draft;
}

void add_draft(InstanceMemory& memory, const Draft& draft, const Pool& pool, const Gpu& gpu) {
  const InstanceMemory own = instance_memory(draft.plan, draft.price->operators(), gpu, *pool.software, draft.habits);
  memory.weights += own.weights;
  memory.kv_per_token += own.kv_per_token;
}

// From the memory that is left, and what the engine and the job say.
void put_rules(const ServingJob& job, const Pool& pool, PoolDeployment& out) {
  const std::int64_t tokens = pool.kv_tokens > 0 ? pool.kv_tokens : out.memory.tokens();
  const int replicas = pool.plan.dp;
  out.rules.role = pool.role;
  out.rules.batching = pool.habits.batching;
  out.rules.chunked_prefill = pool.habits.chunked_prefill;
  out.rules.overflow = pool.habits.overflow;
  out.rules.sequences = std::int64_t{pool.habits.sequences} * replicas;
  out.rules.lanes = std::int64_t{replicas} * pool.plan.pp;  // every group of a pipeline is a pass of its own to the engine
  out.rules.tokens = pool.habits.tokens * out.rules.lanes;
  out.rules.speculation = pool.speculation;
  out.rules.drawing_seed = config::mixed(job.seed * config::golden_gamma + drawing_stream);
  out.rules.page = page_tokens(pool.plan, pool.habits, pool.speculation.tokens);
  out.rules.state_pages = state_pages(pool.plan, pool.habits, pool.speculation.tokens);
  out.rules.ahead = pool.habits.ahead && pool.plan.pp == 1 && pool.habits.batching != Batching::fixed && pool.role != Role::prefill;
  out.rules.pages = tokens / out.rules.page * replicas;
  out.rules.free_pages = static_cast<std::int64_t>(pool.habits.watermark * static_cast<double>(out.rules.pages));
  if (pool.prefix_cache) out.rules.blocks = job.load.blocks;
  if (pool.habits.overflow == Overflow::swap) put_swap(out.rules, pool, job.parts[pool.part].cluster);
}

}  // namespace

PoolDeployment deploy_pool(const ServingJob& job, const Pool& pool) {
  const ClusterPart& part = job.parts[pool.part];
  PoolDeployment out;
  out.pool = &pool;
  const std::shared_ptr<const Draft> draft = draft_of(pool, part);
  const auto draft_price = draft ? std::shared_ptr<const PassPrice>(draft, draft->price.get()) : nullptr;
  out.price = std::make_shared<const OperatorPassPrice>(pool.plan, part.gpu, part.costs, *pool.software, part.cluster, pool.habits,
                                                        pool.speculation.tokens, draft_price);
  out.memory = instance_memory(pool.plan, out.price->operators(), part.gpu, *pool.software, pool.habits);
  if (draft) add_draft(out.memory, *draft, pool, part.gpu);
  put_rules(job, pool, out);
  return out;
}

PoolDeployment deploy_pool(const ServingJob& job, const Pool& pool, const std::shared_ptr<const PoolDeployment>& priced) {
  PoolDeployment out;
  out.pool = &pool;
  out.price = {priced, priced->price.get()};
  out.memory = priced->memory;
  const InstanceMemory memory = instance_memory(pool.plan, out.price->operators(), job.parts[pool.part].gpu, *pool.software, pool.habits);
  out.memory.activations = memory.activations;
  out.memory.slots = memory.slots;
  put_rules(job, pool, out);
  return out;
}

Deployment deploy(const ServingJob& job) {
  Deployment deployment;
  for (const Pool& pool : job.pools) {
    deployment.pools.push_back(deploy_pool(job, pool));
    if (deployment.misfit.empty()) deployment.misfit = misfit_of(deployment.pools.back());
  }
  if (job.apart()) deployment.transfers = std::make_shared<NetworkTransfers>(job);
  return deployment;
}

namespace {

// Of instances that send between nodes, where caches are handed over too.
void go_by_layers(const ServingJob& job, ServingSetup& setup) {
  ServiceLinks links(job);
  const std::vector<std::vector<int>> places = places_of(job);
  for (std::size_t pool = 0; pool < job.pools.size(); ++pool) {
    const Pool& its = job.pools[pool];
    const topology::ClusterSpec& cluster = job.parts[its.part].cluster;
    const bool sends = its.plan.pp == 1 && its.plan.gpus() > cluster.domain_gpus();
    setup.pools[pool].rules.one_by_one = sends;
    for (const int place : places[pool]) {
      LayeredPasses& passes = setup.layered.emplace_back();
      if (!sends) continue;
      passes.layers = its.plan.model.layers;
      std::map<ServiceLink, int> domains;
      double all = 0;
      for (int gpu = place; gpu < place + its.plan.gpus(); ++gpu) {
        for (const ServiceLink& port : links.port(its.part, gpu)) {
          domains.emplace(port, gpu / cluster.domain_gpus());
          ++all;
        }
      }
      for (const auto& [port, domain] : domains) {
        passes.ports.push_back(port);
        passes.domains.push_back(domain);
      }
      if (all > 0) passes.gpus_each = all / static_cast<double>(passes.ports.size());
    }
  }
}

// Every GPU has as much to read as the fullest; those of a node share its disk, all of a part its storage.
void load_weights(const ServingJob& job, const Deployment& deployment, WeightLoads& loads) {
  const std::vector<std::vector<int>> places = places_of(job);
  std::map<std::pair<std::size_t, int>, std::size_t> links;  // by part and node
  for (std::size_t pool = 0; pool < job.pools.size(); ++pool) {
    const Pool& its = job.pools[pool];
    const topology::ClusterSpec& cluster = job.parts[its.part].cluster;
    const bool disk = job.reload != ServingJob::Reload::storage;
    for (const int place : places[pool]) {
      std::map<std::size_t, double> bytes;
      for (int gpu = place; gpu < place + its.plan.gpus(); ++gpu) {
        const auto [link, fresh] = links.try_emplace({its.part, disk ? gpu / cluster.gpus_per_node : 0}, loads.links.size());
        if (fresh) loads.links.push_back(disk ? cluster.storage.disk_read_bytes_per_s : cluster.storage.shared_read_bytes_per_s);
        bytes[link->second] += deployment.pools[pool].memory.weights;
      }
      auto& reads = loads.instances.emplace_back();
      for (const auto& [link, of_it] : bytes) reads.push_back({link, of_it});
    }
  }
}

// Instances of its own pool first.
void load_from_peers(const ServingJob& job, const Deployment& deployment, WeightLoads& loads) {
  std::vector<std::size_t> pool_of;
  for (std::size_t pool = 0; pool < job.pools.size(); ++pool) pool_of.insert(pool_of.end(), job.pools[pool].instances, pool);
  for (std::size_t instance = 0; instance < pool_of.size(); ++instance) {
    const std::size_t own = pool_of[instance];
    std::vector<std::size_t>& peers = loads.peers.emplace_back();
    for (std::size_t other = 0; other < pool_of.size(); ++other) {
      if (other != instance && has_weights_of(job.pools[pool_of[other]], job.pools[own])) peers.push_back(other);
    }
    std::stable_partition(peers.begin(), peers.end(), [&](std::size_t peer) { return pool_of[peer] == own; });
    loads.gpu_bytes.push_back(deployment.pools[own].memory.weights);
  }
}

// Of the pools of each role.
void take_lengths(const Deployment& deployment, ServingSetup& setup) {
  for (const Role role : {Role::both, Role::prefill, Role::decode}) {
    std::vector<int> longest;
    for (const PoolDeployment& pool : deployment.pools) {
      if (pool.pool->role == role) longest.push_back(pool.pool->longest_prompt);
    }
    std::size_t next = 0;
    const std::vector<LengthRange> ranges = length_ranges(longest);
    for (PoolSetup& pool : setup.pools) {
      if (pool.rules.role == role) pool.rules.prompts = ranges[next++];
    }
  }
}

}  // namespace

ServingSetup setup_of(const ServingJob& job, const Deployment& deployment) {
  ServingSetup setup;
  for (const PoolDeployment& pool : deployment.pools)
    setup.pools.push_back({pool.pool->name, pool.rules, pool.price, pool.pool->instances, pool.pool->habits.request_s});
  take_lengths(deployment, setup);
  setup.prompt_router = job.prompt_router;
  setup.decode_router = job.decode_router;
  setup.arrivals = job.load.arrivals;
  setup.requests = draw_requests(job.load, job.seed);
  setup.seed = job.seed;
  setup.transfers = deployment.transfers;
  setup.faults = job.faults;
  setup.timeout_s = job.transfer.timeout_s;
  if (job.reload != ServingJob::Reload::counted) load_weights(job, deployment, setup.loads);
  if (job.reload == ServingJob::Reload::peer) {
    load_from_peers(job, deployment, setup.loads);
    if (!setup.transfers) setup.transfers = std::make_shared<NetworkTransfers>(job);
  }
  if (job.by_layers && deployment.transfers) go_by_layers(job, setup);
  return setup;
}

}  // namespace rehearse::sim
