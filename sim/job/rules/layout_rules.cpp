#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/job/refusal.hpp"
#include "sim/job/rules/rule.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using workloads::ContextComm;
using workloads::Parallel;
using workloads::Workload;

std::int64_t chunks_of(const Parallel& p) { return std::int64_t{p.pp} * p.vpp; }

std::string chunks_text(const Parallel& p) {
  return p.vpp > 1 ? fmt::format("pp*vpp = {}*{} = {}", p.pp, p.vpp, chunks_of(p)) : fmt::format("pp = {}", p.pp);
}

bool given_split(const Workload& w) { return !w.parallel.layers_per_stage.empty(); }

std::int64_t sum_of(const std::vector<int>& layers) { return std::accumulate(layers.begin(), layers.end(), std::int64_t{0}); }

// Layers ------------------------------------------------------------------------------------------------------------------------------

const Rule chunks_need_stages{
    "parallel.vpp", [](const Workload& w, const System&) { return w.parallel.vpp == 1 || w.parallel.pp > 1; },
    [](const Workload& w, const System&) { return Refusal{fmt::format("vpp ({}) needs pp > 1", w.parallel.vpp)}; }};

bool enough_layers(const Workload& w) { return given_split(w) || w.model.layers >= chunks_of(w.parallel); }

Refusal too_few_layers(const Workload& w, const System&) {
  return {fmt::format("model '{}' has {} layers, fewer than {}", w.model.name, w.model.layers, chunks_text(w.parallel))};
}

const Rule layers_for_chunks{"parallel.vpp", [](const Workload& w, const System&) { return w.parallel.vpp == 1 || enough_layers(w); },
                             too_few_layers};
const Rule layers_for_stages{"parallel.pp", [](const Workload& w, const System&) { return enough_layers(w); }, too_few_layers};

const Rule chunks_alike{
    "parallel.vpp",
    [](const Workload& w, const System&) { return given_split(w) || w.parallel.vpp == 1 || w.model.layers % chunks_of(w.parallel) == 0; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("model '{}' has {} layers, not a multiple of {}", w.model.name, w.model.layers, chunks_text(w.parallel)),
                     "give layers_per_stage for an uneven split"};
    }};

const Rule split_of_all_chunks{"parallel.layers_per_stage",
                               [](const Workload& w, const System&) {
                                 return !given_split(w) ||
                                        static_cast<std::int64_t>(w.parallel.layers_per_stage.size()) == chunks_of(w.parallel);
                               },
                               [](const Workload& w, const System&) {
                                 const Parallel& p = w.parallel;
                                 return Refusal{fmt::format("layers_per_stage has {} entries, but pp*vpp = {}*{} = {}",
                                                            p.layers_per_stage.size(), p.pp, p.vpp, chunks_of(p))};
                               }};

const Rule split_of_all_layers{
    "parallel.layers_per_stage",
    [](const Workload& w, const System&) { return !given_split(w) || sum_of(w.parallel.layers_per_stage) == w.model.layers; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("layers_per_stage adds up to {}, but model '{}' has {} layers", sum_of(w.parallel.layers_per_stage),
                                 w.model.name, w.model.layers)};
    }};

// Widths ------------------------------------------------------------------------------------------------------------------------------

Refusal not_divided(std::string_view what, int size, int tp) {
  return {fmt::format("the model's {} ({}) is not a multiple of tp ({})", what, size, tp)};
}

const Rule heads_over_tp{"parallel.tp", [](const Workload& w, const System&) { return w.model.heads % w.parallel.tp == 0; },
                         [](const Workload& w, const System&) { return not_divided("heads", w.model.heads, w.parallel.tp); }};

const Rule ffn_over_tp{"parallel.tp", [](const Workload& w, const System&) { return w.model.ffn % w.parallel.tp == 0; },
                       [](const Workload& w, const System&) { return not_divided("ffn", w.model.ffn, w.parallel.tp); }};

// Fewer key/value heads than ranks are replicated.
const Rule kv_heads_over_tp{
    "parallel.tp",
    [](const Workload& w, const System&) {
      const int tp = w.parallel.tp;
      return w.model.heads == 0 || w.model.kv_heads % tp == 0 || tp % w.model.kv_heads == 0;
    },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("neither of kv_heads ({}) and tp ({}) is a multiple of the other", w.model.kv_heads, w.parallel.tp)};
    }};

// A mixer's heads and the groups that they share.
const Rule mixer_heads_over_tp{
    "parallel.tp", [](const Workload& w, const System&) { return !w.model.mixer || w.model.mixer->heads % w.parallel.tp == 0; },
    [](const Workload& w, const System&) { return not_divided("mixer.heads", w.model.mixer->heads, w.parallel.tp); }};

const Rule mixer_groups_over_tp{
    "parallel.tp", [](const Workload& w, const System&) { return !w.model.mixer || w.model.mixer->groups % w.parallel.tp == 0; },
    [](const Workload& w, const System&) { return not_divided("mixer.groups", w.model.mixer->groups, w.parallel.tp); }};

// The sequence is exchanged for heads over cp; groups that are fewer are repeated.
bool mixer_over_cp(const Workload& w) {
  if (!w.model.mixer) return true;
  const int cp = w.parallel.cp, heads = w.model.mixer->heads / w.parallel.tp, groups = w.model.mixer->groups / w.parallel.tp;
  return heads % cp == 0 && (groups % cp == 0 || cp % groups == 0);
}
const Rule mixer_heads_over_cp{"parallel.cp", [](const Workload& w, const System&) { return mixer_over_cp(w); },
                               [](const Workload& w, const System&) {
                                 const int tp = w.parallel.tp;
                                 return Refusal{fmt::format("a GPU's heads ({}) and groups ({}) of the mixer cannot be shared by cp ({})",
                                                            w.model.mixer->heads / tp, w.model.mixer->groups / tp, w.parallel.cp)};
                               }};

const Rule etp_divides_tp{"parallel.etp", [](const Workload& w, const System&) { return w.parallel.tp % w.parallel.etp == 0; },
                          [](const Workload& w, const System&) {
                            return Refusal{fmt::format("tp ({}) is not a multiple of etp ({})", w.parallel.tp, w.parallel.etp)};
                          }};

// The sequence ------------------------------------------------------------------------------------------------------------------------

const Rule context_needs_flash{
    "attention", [](const Workload& w, const System&) { return w.parallel.cp == 1 || w.attention != workloads::Attention::unfused; },
    [](const Workload&, const System&) { return Refusal{"context parallelism (cp > 1) needs attention: flash"}; }, "parallel.cp"};

const Rule windows_without_ring{"parallel.cp_comm",
                                [](const Workload& w, const System&) {
                                  const bool windowed = w.model.window && w.model.heads > 0 && w.model.window->tokens < w.batch.context();
                                  return !windowed || w.parallel.cp == 1 || w.parallel.cp_comm != ContextComm::ring;
                                },
                                [](const Workload& w, const System&) {
                                  return Refusal{fmt::format("ring attention has no sliding windows, and model '{}' has ({} tokens)",
                                                             w.model.name, w.model.window->tokens),
                                                 "all-gather or all-to-all would work"};
                                },
                                "parallel.cp"};

// Each rank has one block from either end, so that causal work is balanced; exchanged for heads, the whole sequence.
int blocks_per_rank(const Parallel& p) { return p.cp > 1 && p.cp_comm != ContextComm::all_to_all ? 2 : 1; }

const Rule sequence_over_cp{
    "batch.sequence",
    [](const Workload& w, const System&) { return w.batch.sequence % (std::int64_t{blocks_per_rank(w.parallel)} * w.parallel.cp) == 0; },
    [](const Workload& w, const System&) {
      const Parallel& p = w.parallel;
      const int blocks = blocks_per_rank(p) * p.cp;
      const std::string what = blocks_per_rank(p) == 2 ? fmt::format("2*cp = 2*{} = {}", p.cp, blocks) : fmt::format("cp = {}", blocks);
      return Refusal{fmt::format("sequence ({}) is not a multiple of {}", w.batch.sequence, what),
                     fmt::format("sequence: {} would work", multiples_near(w.batch.sequence, blocks))};
    }};

const Rule sp_needs_tp{"parallel.sp", [](const Workload& w, const System&) { return !w.parallel.sp || w.parallel.tp > 1; },
                       [](const Workload&, const System&) { return Refusal{"sp needs tp > 1"}; }};

const Rule sequence_over_tp{
    "batch.sequence",
    [](const Workload& w, const System&) { return !w.parallel.sp || w.batch.sequence / w.parallel.cp % w.parallel.tp == 0; },
    [](const Workload& w, const System&) {
      const auto& [sequence, p] = std::pair(w.batch.sequence, w.parallel);
      return Refusal{fmt::format("with sp, sequence/cp ({}/{} = {}) must be a multiple of tp ({})", sequence, p.cp, sequence / p.cp, p.tp)};
    }};

// All-to-all context parallelism gives each rank whole sequences of a share of the heads.
int on_gpu(int heads, const Parallel& p) { return std::max(1, heads / p.tp); }

bool shares_heads(int heads, const Workload& w) {
  return w.parallel.cp_comm != ContextComm::all_to_all || w.model.heads == 0 || on_gpu(heads, w.parallel) % w.parallel.cp == 0;
}

Refusal heads_not_shared(std::string_view what, int heads, const Parallel& p) {
  return {fmt::format("all-to-all needs the model's {} on a GPU ({}/{} = {}) to be a multiple of cp ({})", what, heads, p.tp,
                      on_gpu(heads, p), p.cp),
          "cp_comm: ring or all-gather would work"};
}

const Rule heads_exchanged{"parallel.cp_comm", [](const Workload& w, const System&) { return shares_heads(w.model.heads, w); },
                           [](const Workload& w, const System&) { return heads_not_shared("heads", w.model.heads, w.parallel); }};
// Fewer of them than ranks are repeated.
bool shares_kv_heads(const Workload& w) {
  return shares_heads(w.model.kv_heads, w) || w.parallel.cp % on_gpu(w.model.kv_heads, w.parallel) == 0;
}
const Rule kv_heads_exchanged{"parallel.cp_comm", [](const Workload& w, const System&) { return shares_kv_heads(w); },
                              [](const Workload& w, const System&) { return heads_not_shared("kv_heads", w.model.kv_heads, w.parallel); }};

// Shards ------------------------------------------------------------------------------------------------------------------------------

bool shards_over_all(const Workload& w) { return w.optimizer.shard_group == workloads::replica_sync(w).ranks; }

const Rule mirrors_shard_over_all{
    "optimizer.shard_group",
    [](const Workload& w, const System&) { return shards_over_all(w) || !workloads::ScheduleRegistry::get(w.schedule).mirrors(); },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("shard_group ({}) with schedule {}", w.optimizer.shard_group, w.schedule),
                     fmt::format("leave it out to shard over all {} ranks with the same parameters", workloads::replica_sync(w).ranks)};
    }};

const Rule groups_need_sharding{"optimizer.shard_group",
                                [](const Workload& w, const System&) { return shards_over_all(w) || w.optimizer.zero_stage > 0; },
                                [](const Workload& w, const System&) {
                                  return Refusal{fmt::format("shard_group ({}) without sharding", w.optimizer.shard_group),
                                                 "sharding: zero1, zero2 or zero3, or leave shard_group out"};
                                }};

const Rule groups_divide_replicas{
    "optimizer.shard_group",
    [](const Workload& w, const System&) { return workloads::replica_sync(w).ranks % w.optimizer.shard_group == 0; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("shard_group ({}) does not divide dp*cp = {}*{} = {}", w.optimizer.shard_group, w.parallel.dp,
                                 w.parallel.cp, workloads::replica_sync(w).ranks)};
    }};

const Rule no_sync_shards_gradients{
    "optimizer.no_sync", [](const Workload& w, const System&) { return !w.optimizer.no_sync || w.optimizer.zero_stage >= 2; },
    [](const Workload&, const System&) {
      return Refusal{"no_sync without sharded gradients", "sharding: zero2 or zero3, or leave no_sync out: they are reduced once anyway"};
    }};

}  // namespace

std::vector<Rule> layout_rules() {
  return {chunks_need_stages,
          layers_for_chunks,
          layers_for_stages,
          chunks_alike,
          split_of_all_chunks,
          split_of_all_layers,
          heads_over_tp,
          ffn_over_tp,
          kv_heads_over_tp,
          mixer_heads_over_tp,
          mixer_groups_over_tp,
          mixer_heads_over_cp,
          etp_divides_tp,
          context_needs_flash,
          windows_without_ring,
          sequence_over_cp,
          sp_needs_tp,
          sequence_over_tp,
          heads_exchanged,
          kv_heads_exchanged,
          mirrors_shard_over_all,
          groups_need_sharding,
          groups_divide_replicas,
          no_sync_shards_gradients};
}

}  // namespace rehearse::sim
