#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/job/rules/rule.hpp"
#include "workloads/names.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using workloads::MoeSpec;
using workloads::Parallel;
using workloads::Workload;

// Pairs of micro-batches ---------------------------------------------------------------------------------------------------------------

Refusal no_pairs(std::string_view what, std::string instead) {
  return {fmt::format("ep overlap does not go with {}", what), std::move(instead)};
}

const Rule pairs_have_experts{"overlap.ep", [](const Workload& w, const System&) { return !w.overlap.ep || w.model.moe; },
                              [](const Workload&, const System&) { return no_pairs("a model without experts", "ep: false"); }};

std::string schedules_with_pairs() {
  std::vector<std::string> names = workloads::ScheduleRegistry::names();
  std::erase_if(names, [](const std::string& name) { return !workloads::ScheduleRegistry::get(name).runs_pairs(); });
  return fmt::format("one of {}", fmt::join(names, ", "));
}

const Rule pairs_scheduled{
    "overlap.ep",
    [](const Workload& w, const System&) { return !w.overlap.ep || workloads::ScheduleRegistry::get(w.schedule).runs_pairs(); },
    [](const Workload& w, const System&) { return no_pairs(fmt::format("schedule {}", w.schedule), schedules_with_pairs()); }};

const Rule pairs_in_one_chunk{
    "overlap.ep", [](const Workload& w, const System&) { return !w.overlap.ep || w.experts.chunks == 1; },
    [](const Workload&, const System&) { return no_pairs("chunks, which overlap by themselves", "moe.chunks: 1"); }};

const Rule pairs_reduce_once{
    "overlap.ep", [](const Workload& w, const System&) { return !w.overlap.ep || !workloads::replica_sync(w).reduce_each_microbatch; },
    [](const Workload&, const System&) { return no_pairs("gradients that are sharded after every micro-batch", "sharding: zero1"); }};

const Rule delays_in_pairs{
    "overlap.delay_wgrad", [](const Workload& w, const System&) { return !w.overlap.delay_wgrad || w.overlap.ep; },
    [](const Workload&, const System&) {
      return Refusal{"weight gradients are delayed in overlapped pairs only", "overlap: {ep: true, delay_wgrad: true}"};
    }};

const Rule delays_whole_backwards{
    "overlap.delay_wgrad",
    [](const Workload& w, const System&) {
      return !w.overlap.delay_wgrad || !workloads::ScheduleRegistry::get(w.schedule).splits_backward();
    },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("schedule {} has slots of its own for weight gradients", w.schedule), "delay_wgrad: false"};
    }};

// Ranks that share experts -------------------------------------------------------------------------------------------------------------

const Rule experts_to_spread{"parallel.ep", [](const Workload& w, const System&) { return w.model.moe || w.parallel.ep == 1; },
                             [](const Workload& w, const System&) {
                               return Refusal{fmt::format("ep ({}) spreads experts, and model '{}' has none", w.parallel.ep, w.model.name)};
                             }};

const Rule experts_over_ep{
    "parallel.ep", [](const Workload& w, const System&) { return !w.model.moe || w.model.moe->experts % w.parallel.ep == 0; },
    [](const Workload& w, const System&) {
      const MoeSpec& moe = *w.model.moe;
      std::vector<int> parts;
      for (int ep = 1; ep <= moe.experts; ++ep) {
        if (moe.experts % ep == 0) parts.push_back(ep);
      }
      return Refusal{fmt::format("the model's experts ({}) are not a multiple of ep ({})", moe.experts, w.parallel.ep),
                     fmt::format("ep: {}", fmt::join(parts, ", "))};
    }};

const Rule expert_over_etp{
    "parallel.etp", [](const Workload& w, const System&) { return !w.model.moe || w.model.moe->ffn % w.parallel.etp == 0; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("the model's moe.ffn ({}) is not a multiple of etp ({})", w.model.moe->ffn, w.parallel.etp)};
    }};

const Rule shared_over_tp{"parallel.tp",
                          [](const Workload& w, const System&) {
                            return !w.model.moe || w.model.moe->shared == 0 ||
                                   std::int64_t{w.model.moe->shared} * w.model.moe->ffn % w.parallel.tp == 0;
                          },
                          [](const Workload& w, const System&) {
                            return Refusal{fmt::format("the shared experts' width ({}) is not a multiple of tp ({})",
                                                       std::int64_t{w.model.moe->shared} * w.model.moe->ffn, w.parallel.tp)};
                          }};

std::int64_t plane(const Parallel& p) { return std::int64_t{p.tp} * p.cp * p.dp; }
std::int64_t part(const Parallel& p) { return std::int64_t{p.etp} * p.ep; }

const Rule whole_expert_groups{"parallel.ep",
                               [](const Workload& w, const System&) { return !w.model.moe || plane(w.parallel) % part(w.parallel) == 0; },
                               [](const Workload& w, const System&) {
                                 const Parallel& p = w.parallel;
                                 return Refusal{fmt::format("tp*cp*dp ({}*{}*{} = {}) is not a multiple of etp*ep ({}*{} = {})", p.tp, p.cp,
                                                            p.dp, plane(p), p.etp, p.ep, part(p))};
                               }};

const Rule experts_need_sp{
    "parallel.sp", [](const Workload& w, const System&) { return !w.model.moe || w.parallel.tp == 1 || w.parallel.sp; },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("a model with experts needs sp with tp ({}): each rank routes its own tokens", w.parallel.tp), "sp: true"};
    }};

const Rule experts_stay{
    "parallel.order",
    [](const Workload& w, const System&) { return !w.model.moe || workloads::RankGrid(w.parallel).experts_keep_stages(); },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("with etp*ep = {}*{} this order would put experts into other pipeline stages than their layers",
                                 w.parallel.etp, w.parallel.ep),
                     "put pp last"};
    }};

// Tokens on their way ------------------------------------------------------------------------------------------------------------------

const Rule chunks_recomputed{
    "moe.chunk_recompute",
    [](const Workload& w, const System&) {
      return !w.model.moe || !w.experts.chunk_recompute || !workloads::ScheduleRegistry::get(w.schedule).splits_backward();
    },
    [](const Workload& w, const System&) {
      return Refusal{fmt::format("schedule {} splits backward; chunks that are recomputed make both gradients at once", w.schedule),
                     "chunk_recompute: false, or schedule: 1f1b"};
    }};

const Rule chunks_of_whole_experts{
    "moe.chunk_recompute", [](const Workload& w, const System&) { return !w.model.narrows() || !w.experts.chunk_recompute; },
    [](const Workload&, const System&) {
      return Refusal{"chunks that bring back their tokens are not simulated for experts narrower than their layer (model.moe.latent)",
                     "chunk_recompute: false"};
    }};

const Rule nodes_counted{
    "moe.nodes_per_token",
    [](const Workload& w, const System&) {
      return !w.model.moe || w.experts.nodes_per_token == 0 || w.experts.dispatcher == workloads::Dispatcher::hierarchical;
    },
    [](const Workload& w, const System&) {
      return Refusal{
          fmt::format("dispatcher {} sends to every node that has a token's experts", workloads::dispatchers.of(w.experts.dispatcher)),
          "dispatcher: hierarchical, or no nodes_per_token"};
    }};

const Rule capacity_known{
    "moe.pad_to",
    [](const Workload& w, const System&) {
      return w.experts.pad_to != workloads::ExpertPlan::to_capacity || w.experts.capacity_factor > 0;
    },
    [](const Workload&, const System&) {
      return Refusal{"experts that take all that come have no capacity to fill up to", "capacity_factor: 1 for example"};
    }};

const Rule capacity_sent{
    "moe.pad_to",
    [](const Workload& w, const System&) {
      return w.experts.pad_to != workloads::ExpertPlan::to_capacity || w.experts.dispatcher != workloads::Dispatcher::hierarchical;
    },
    [](const Workload&, const System&) {
      return Refusal{"dispatcher hierarchical sends tokens, and nothing to fill capacity with", "dispatcher: alltoall"};
    }};

}  // namespace

std::vector<Rule> experts_rules() {
  return {pairs_have_experts, pairs_scheduled,   pairs_in_one_chunk,      pairs_reduce_once, delays_in_pairs,     delays_whole_backwards,
          experts_to_spread,  experts_over_ep,   expert_over_etp,         shared_over_tp,    whole_expert_groups, experts_need_sp,
          experts_stay,       chunks_recomputed, chunks_of_whole_experts, nodes_counted,     capacity_known,      capacity_sent};
}

}  // namespace rehearse::sim
