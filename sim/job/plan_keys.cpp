#include "sim/job/plan_keys.hpp"

#include <array>

namespace rehearse::sim {
namespace {

using workloads::Workload;

// A field of a part of the workload; a field of the workload itself.
template <auto Part, auto Field>
void part(const Workload& from, Workload& to) {
  to.*Part.*Field = from.*Part.*Field;
}
template <auto Field>
void field(const Workload& from, Workload& to) {
  to.*Field = from.*Field;
}

using workloads::Batch;
using workloads::ExpertPlan;
using workloads::Optimizer;
using workloads::Overlap;
using workloads::Parallel;

constexpr auto parallel = &Workload::parallel;
constexpr auto batch = &Workload::batch;
constexpr auto overlap = &Workload::overlap;
constexpr auto optimizer = &Workload::optimizer;
constexpr auto experts = &Workload::experts;

// The search walks them in this order. What stands behind batch.micro changes no unit's price, sharding only where operators depend on it
// (sim/analytic/evaluator.hpp).
constexpr std::array keys{
    PlanKey{"parallel.tp", part<parallel, &Parallel::tp>},
    PlanKey{"parallel.cp", part<parallel, &Parallel::cp>},
    PlanKey{"parallel.pp", part<parallel, &Parallel::pp>},
    PlanKey{"parallel.dp", part<parallel, &Parallel::dp>},
    PlanKey{"parallel.ep", part<parallel, &Parallel::ep>},
    PlanKey{"parallel.etp", part<parallel, &Parallel::etp>},
    PlanKey{"parallel.vpp", part<parallel, &Parallel::vpp>},
    PlanKey{"schedule", field<&Workload::schedule>},
    PlanKey{"parallel.order", part<parallel, &Parallel::order>},
    PlanKey{"parallel.layers_per_stage", part<parallel, &Parallel::layers_per_stage>},
    PlanKey{"parallel.cp_comm", part<parallel, &Parallel::cp_comm>},
    PlanKey{"parallel.sp", part<parallel, &Parallel::sp>},
    PlanKey{"batch.global", part<batch, &Batch::global>},
    PlanKey{"batch.sequence", part<batch, &Batch::sequence>},
    PlanKey{"batch.document_tokens", part<batch, &Batch::document>},
    PlanKey{"attention", field<&Workload::attention>},
    PlanKey{"recompute", field<&Workload::recompute>},
    PlanKey{"offload.activations", field<&Workload::offload_activations>},
    PlanKey{"offload.weights", field<&Workload::offload_weights>},
    PlanKey{"optimizer.device", part<optimizer, &Optimizer::on_cpu>},
    PlanKey{"optimizer.no_sync", part<optimizer, &Optimizer::no_sync>},
    PlanKey{"optimizer.shard_group", part<optimizer, &Optimizer::shard_group>},
    PlanKey{"moe.dispatcher", part<experts, &ExpertPlan::dispatcher>},
    PlanKey{"moe.chunks", part<experts, &ExpertPlan::chunks>},
    PlanKey{"moe.chunk_recompute", part<experts, &ExpertPlan::chunk_recompute>},
    PlanKey{"moe.capacity_factor", part<experts, &ExpertPlan::capacity_factor>},
    PlanKey{"moe.nodes_per_token", part<experts, &ExpertPlan::nodes_per_token>},
    PlanKey{"overlap.tp", part<overlap, &Overlap::tp>},
    PlanKey{"overlap.tp_splits", part<overlap, &Overlap::tp_splits>},
    PlanKey{"overlap.cp", part<overlap, &Overlap::cp>},
    PlanKey{"overlap.ep", part<overlap, &Overlap::ep>},
    PlanKey{"batch.micro", part<batch, &Batch::micro>},
    PlanKey{"optimizer.sharding", part<optimizer, &Optimizer::zero_stage>},
    PlanKey{"overlap.pp", part<overlap, &Overlap::pp>},
    PlanKey{"overlap.dp_gradients", part<overlap, &Overlap::dp_gradients>},
    PlanKey{"overlap.dp_parameters", part<overlap, &Overlap::dp_parameters>},
};

}  // namespace

const PlanKey* plan_key(std::string_view path) {
  for (const PlanKey& key : keys) {
    if (key.path == path) return &key;
  }
  return nullptr;
}

std::size_t plan_key_rank(const PlanKey& key) { return static_cast<std::size_t>(&key - keys.data()); }

}  // namespace rehearse::sim
