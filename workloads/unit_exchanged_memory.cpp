// What a unit holds of the pairs that its experts receive, and of the weights and gradients that replicas exchange.
#include <algorithm>

#include "workloads/operators/shard.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

UnitMemory UnitMemory::with_tokens(double pairs) const {
  UnitMemory all = *this;
  all.activations += pairs * received_activations;
  all.forward_temporary += pairs * received_forward;
  double most = 0;
  for (const PairMoment& one : received_backward) most = std::max(most, pairs * one.per_pair + one.matrices);
  all.backward_temporary += most;
  return all;
}

UnitMemory UnitMemory::with_replicas(const ReplicaSync& sync, const Parameters& what) const {
  UnitMemory all = *this;
  if (!sync.replicated() && !sync.copied) return all;
  const double parameters = what.trained();
  const double weights = sync.shards_parameters ? sync.gathered_bytes(what) : 0;
  if (!in_root) all.gathered = weights;
  if (sync.reduce_each_microbatch || sync.shards_parameters) {  // as autograd makes them, and copied to what is reduced
    const double copy = sync.copied ? parameters * sync.gradient_bytes : 0;
    double reduced = parameters * sync.trained_weight_bytes + copy;
    if (reduced_last && sync.shards_parameters) {  // those that autograd made go before the shard is made
      const double shard = sync.shard(parameters, 0) * sync.gradient_bytes;
      reduced = std::max(reduced, copy + shard) - (shard_counted ? shard : 0) - weights;
    }
    all.bucket = std::max(0.0, reduced - gone_before_gradients);
  }
  return all;
}

Parameters exchanged_at_once(const Workload& workload, const MemoryHabits& habits, const Unit& unit) {
  const Parameters& all = unit.exchanged;
  if (habits.live_parameters > 0)
    return unit.kind == UnitKind::head && workload.parallel.dp * workload.parallel.cp > 1 ? all : Parameters{};
  if (!habits.planned || unit.kind == UnitKind::embedding || unit.kind == UnitKind::head) return all;
  const Shard shard = shard_of(workload);
  double elements = static_cast<double>(shard.hidden * std::max(shard.ffn, shard.query_width));
  if (unit.layer_kind == LayerKind::experts) {  // of all of the rank's experts at once
    const MoeSpec& moe = *workload.model.moe;
    const double experts = static_cast<double>(moe.experts) / workload.parallel.ep;
    elements = experts * workload.model.routed_width() * static_cast<double>(moe.ffn) / workload.parallel.etp;
  }
  const double matrix = std::min(all.all, elements);
  return {matrix, 0, std::min(all.layers, matrix), std::min(all.frozen, matrix)};
}

}  // namespace rehearse::workloads
