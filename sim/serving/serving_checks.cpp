#include "sim/serving/serving_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "config/quantity.hpp"
#include "sim/serving/capacity.hpp"
#include "sim/serving/placement.hpp"
#include "sim/serving/pool_keys.hpp"
#include "sim/serving/router.hpp"
#include "sim/serving/transfer_lane.hpp"
#include "workloads/serving/cache_bytes.hpp"

namespace rehearse::sim {

using config::Node;

void check_roles(ServingJob& job, const Node& serving) {
  const Node pools = serving.at("pools");
  const auto names = [](Role role) { return role_names().of(role); };
  if (job.isolate) {
    std::erase_if(job.pools, [&](const Pool& pool) { return pool.role != *job.isolate; });
    if (job.pools.empty() || *job.isolate == Role::both)
      serving.at("isolate").fail(fmt::format("there is no pool with role {}", names(*job.isolate)));
    return;
  }
  const Role first = job.pools.front().role, last = job.pools.back().role;
  if (first == Role::both && last != Role::both)
    pools.fail_at_key(fmt::format("pools of role both stand beside none of role {}", names(last)), "use prefill and decode, or both");
  if (first != Role::both && first == last)
    pools.fail_at_key(fmt::format("a pool of role {} needs its other side", names(first)),
                      fmt::format("or write isolate: {}", names(first)));
}

void check_size(const ServingJob& job, const Node& node) {
  for (std::size_t part = 0; part < job.parts.size(); ++part) {
    if (std::ranges::find(job.pools, part, &Pool::part) == job.pools.end()) continue;
    const int used = gpus_taken(job, part);
    const int there = job.parts[part].cluster.max_gpus();
    if (there > 0 && used > there) {
      node.fail_at_key(fmt::format("the pools take {} GPUs, and {} has {}", used, job.parts[part].cluster.name, there));
    }
  }
}

void check_path(const ServingJob& job, const Node& path) {
  if (job.transfer.path != TransferPath::gpu_direct || job.isolate) return;
  for (const Pool& pool : job.pools) {
    const Gpu &first = job.parts[job.pools.front().part].gpu, &other = job.parts[pool.part].gpu;
    if (first.vendor != other.vendor)
      path.fail(
          fmt::format("nothing leads from the memory of {} ({}) to that of {} ({})", first.name, first.vendor, other.name, other.vendor),
          "write path: host-staged");
  }
}

void check_alignable(const ServingJob& job, const Node& serving) {
  if (!job.apart()) return;
  if (const auto refused = hand_over_refused(job)) serving.at("pools").at(job.pools[refused->to_pool].name).fail(refused->refused);
}

void check_align(const ServingJob& job, const Node& align) {
  if (job.transfer.align != AlignAt::host || job.isolate) return;
  for (const Pool& pool : job.pools) {
    const ClusterPart& part = job.parts[pool.part];
    if (part.gpu.vendor == job.parts[job.pools.front().part].gpu.vendor && job.transfer.path != TransferPath::host_staged &&
        pool.role == Role::decode)
      align.fail("caches do not go through the hosts' memory", "write path: host-staged");
    if (pool.role == Role::decode && part.cluster.host_memory.bytes_per_s <= 0)
      align.fail(fmt::format("the file of cluster {} does not say how fast its hosts' memory is", part.cluster.name),
                 "write host_memory: {bandwidth: 400 GB/s} there");
  }
}

void check_blocks(const ServingJob& job, const Node& serving) {
  for (const Pool& pool : job.pools) {
    if (!pool.prefix_cache) continue;
    const Node key = serving.at("pools").at(pool.name).at("prefix_cache");
    if (!job.load.blocks || job.load.input.law != workloads::LengthLaw::table)
      key.fail("prefix_cache needs a trace with the hashes of its prompts' blocks",
               "write for example arrivals: {trace: FILE}, without input");
    if (static_cast<std::size_t>(job.load.requests) > job.load.blocks->prompts())
      key.fail(fmt::format("the trace has {} prompts, which would come again, and {} requests are asked for", job.load.blocks->prompts(),
                           job.load.requests));
  }
}

void check_prefix_router(const ServingJob& job, const Node& serving) {
  for (const bool prompts : {true, false}) {
    const std::string& router = prompts ? job.prompt_router : job.decode_router;
    if (!RouterRegistry::get(router).finds_prefixes()) continue;
    const auto caches = [&](const Pool& pool) {
      return pool.prefix_cache && (prompts ? pool.role != Role::decode : pool.role == Role::decode);
    };
    const bool asked = prompts || std::ranges::count(job.pools, Role::decode, &Pool::role) > 0;
    if (!asked || std::ranges::any_of(job.pools, caches)) continue;
    serving.at("router")
        .at(prompts ? "prefill" : "decode")
        .fail(fmt::format("{} chooses by what is found in caches, and no pool of that side has prefix_cache", router));
  }
}

void check_lengths(ServingJob& job, const Node& serving) {
  for (const Role role : {Role::both, Role::prefill, Role::decode}) {
    const Pool* longest = nullptr;
    bool any = false, stands = false;
    for (const Pool& pool : job.pools) {
      if (pool.role != role) continue;
      stands = true;
      any = any || pool.longest_prompt == 0;
      if (pool.longest_prompt > 0 && (longest == nullptr || pool.longest_prompt > longest->longest_prompt)) longest = &pool;
    }
    const bool by_length = RouterRegistry::get(job.router_of(role)).goes_by() == GoesBy::lengths;
    const char* key = role == Role::decode ? "decode" : "prefill";
    if (by_length && stands && longest == nullptr)
      job.notes.push_back(fmt::format("router.{}: {} divides nothing: no pool says longest_prompt", key, job.router_of(role)));
    if (!by_length && longest != nullptr)
      job.notes.push_back(fmt::format("pool {}: longest_prompt changes nothing: router.{} is {}", longest->name, key, job.router_of(role)));
    if (!by_length || longest == nullptr || any) continue;
    serving.at("pools")
        .at(longest->name)
        .at("longest_prompt")
        .fail(fmt::format("no pool of role {} takes prompts of more than {} tokens", role_names().of(role), longest->longest_prompt),
              "leave longest_prompt out where the longest prompts go");
  }
}

void note_wide_between(ServingJob& job) {
  if (!job.apart()) return;
  const auto rate = [](double bytes_per_s) { return config::human_quantity(bytes_per_s, config::Dimension::bandwidth); };
  for (std::size_t part = 0; part < job.parts.size(); ++part) {
    const topology::ClusterSpec& cluster = job.parts[part].cluster;
    const double ports = ports_bytes_per_s(cluster, nodes_of(job, part));
    double widest = 0;
    for (std::size_t other = 0; other < job.parts.size(); ++other) {
      if (other != part) widest = std::max(widest, job.between.of(part, other).effective_bytes_per_s());
    }
    if (ports <= 0 || widest <= ports) continue;
    job.notes.push_back(
        fmt::format("between: {} is more than the network ports of part {} carry, {}", rate(widest), job.parts[part].name, rate(ports)));
  }
}

void read_reload(ServingJob& job, const config::Node& reload) {
  using Reload = ServingJob::Reload;
  const std::string from = reload.as_choice({"counted", "disk", "storage", "peer"});
  if (from == "counted") return;
  job.reload = from == "peer" ? Reload::peer : from == "disk" ? Reload::disk : Reload::storage;
  for (const Pool& pool : job.pools) {
    const topology::ClusterSpec& cluster = job.parts[pool.part].cluster;
    const auto same = [&](const Pool& other) { return has_weights_of(other, pool); };
    if (job.reload == Reload::peer && pool.instances == 1 && std::ranges::count_if(job.pools, same) == 1)
      reload.fail(fmt::format("pool {}: no other instance of its part has its weights", pool.name), "write reload: disk");
    if ((job.reload != Reload::storage ? cluster.storage.disk_read_bytes_per_s : cluster.storage.shared_read_bytes_per_s) > 0) continue;
    reload.fail(fmt::format("pool {}: its cluster does not say how fast that is read{}", pool.name,
                            job.reload == Reload::peer ? " where no other instance works, from disk" : ""),
                fmt::format("write storage: {{{}: ...}} in the cluster", job.reload != Reload::storage ? "disk_read" : "shared_read"));
  }
}

bool has_weights_of(const Pool& one, const Pool& other) {
  const auto draft = [](const Pool& pool) { return pool.draft ? pool.draft->name : ""; };
  return one.part == other.part && one.plan.precision.weights == other.plan.precision.weights && draft(one) == draft(other);
}

void note_states(ServingJob& job, const Pool& pool) {
  if (!pool.plan.model.mixer) return;
  const int tried = pool.speculation.tokens, page = page_tokens(pool.plan, pool.habits, tried);
  const double bytes = caching_layers(pool.plan.model).mixers * state_bytes(pool.plan, tried).all;
  job.notes.push_back(
      fmt::format("pool {}: a sequence keeps {} of states on each GPU, for which it takes {} pages of {} tokens of its cache", pool.name,
                  config::human_quantity(bytes, config::Dimension::bytes), state_pages(pool.plan, pool.habits, tried), page));
}

}  // namespace rehearse::sim
