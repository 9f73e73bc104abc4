// What a step does to gradients and parameters between replicas.
#include <algorithm>

#include "workloads/mixer.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/parameter_tensors.hpp"
#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads {

ReplicaCalls ReplicaSync::reduction_calls(const Parameters& what) const {
  const double dense = (what.trained() - what.experts) * gradient_bytes / calls_of(what);
  const double own = what.experts * gradient_bytes / calls_of(what);
  const bool sharded = (shards_parameters || gathers_weights) && !all_reduces;
  const CollectiveKind kind = sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  ReplicaCalls calls;
  if (ranks > 1 && dense > 0) {
    const bool copied = sharded && copies() > 1;
    calls.add({kind, copied ? GroupKind::shard : GroupKind::dp_cp, dense});
    if (copied && !copies_beside) calls.add({CollectiveKind::all_reduce, GroupKind::replicas, dense / shard_ranks});
  }
  if (expert_ranks > 1 && own > 0) calls.add({kind, GroupKind::edp, own});
  return calls;
}

ReplicaCalls ReplicaSync::calls_of_copies(const Parameters& what) const {
  ReplicaCalls calls;
  if (copies_beside && what.trained() > 0)
    calls.add({CollectiveKind::all_reduce, GroupKind::replicas, what.trained() * gradient_bytes / shard_ranks});
  return calls;
}

namespace {

// Of what all replicas have; each one's share comes from its host first where that keeps it.
void add_gather(const ReplicaSync& sync, double bytes, ReplicaCalls& calls) {
  if (bytes <= 0) return;
  if (sync.from_host) calls.add({CollectiveKind::send_recv, GroupKind::from_host, bytes / sync.shard_ranks});
  if (sync.ranks > 1) calls.add({CollectiveKind::all_gather, sync.copies() == 1 ? GroupKind::dp_cp : GroupKind::shard, bytes});
}

}  // namespace

// A broadcast passes its buffer on from rank to rank, piece by piece (NCCL has no tree for it): n-1 hops and the buffer once, as a ring's
// all-gather of as many bytes.
ReplicaCalls ReplicaSync::gather_calls(const Parameters& what, int pieces) const {
  const double own = what.experts * layer_weight_bytes / pieces;
  // ZeRO-1 and 2 gather what the update has changed.
  const bool adapters = what.frozen > 0 && gathers_weights;
  const double all = adapters ? what.trained() * trained_weight_bytes
                              : gathered_bytes({what.all - what.experts, 0, what.layers - what.experts, what.frozen});
  ReplicaCalls calls;
  add_gather(*this, all / pieces, calls);
  if (expert_ranks > 1 && own > 0) calls.add({CollectiveKind::all_gather, GroupKind::edp, own});
  return calls;
}

// Frozen weights stay for backward where adapters alone come again.
ReplicaCalls ReplicaSync::again_calls(const Parameters& what) const {
  if (gathered_again == GatheredAgain::all) return gather_calls(what);
  ReplicaCalls calls;
  if (calls_again(what) > 0) add_gather(*this, what.trained() * trained_weight_bytes / adapter_calls, calls);
  return calls;
}

namespace {

std::vector<Communication> named(const ReplicaCalls& calls, const std::string& what) {
  std::vector<Communication> all;
  for (const ReplicaCall& call : calls) {
    const std::string whose = call.group == GroupKind::edp ? "expert " : "";
    const std::string how = call.group == GroupKind::from_host ? "from host" : std::string(name_of(call.kind));
    all.push_back({whose + what + " " + how, call.kind, call.group, call.bytes, Pass::update});
  }
  return all;
}

}  // namespace

std::vector<Communication> ReplicaSync::reductions(const Parameters& what) const { return named(reduction_calls(what), "gradient"); }

std::vector<Communication> ReplicaSync::sums_of_copies(const Parameters& what) const { return named(calls_of_copies(what), "gradient"); }

std::vector<Communication> ReplicaSync::gathers(const Parameters& what) const { return named(gather_calls(what), "parameter"); }

std::vector<Communication> ReplicaSync::gathers_at_once(const Parameters& what) const {
  return named(gather_calls_at_once(what), "parameter");
}

std::vector<Communication> ReplicaSync::gathers_again(const Parameters& what) const { return named(again_calls(what), "parameter"); }

namespace {

double largest_matrix(const Workload& workload) {
  const Model& model = workload.model;
  const double columns = model.mixer ? static_cast<double>(mixer_columns(*model.mixer)) : 0;
  return std::max(columns, static_cast<double>(model.ffn)) * static_cast<double>(model.hidden) / workload.parallel.tp;
}

double largest_tensor(const Workload& workload) {
  if (workload.lora.on()) return largest_matrix(workload) / workload.model.hidden * workload.lora.rank;
  const double table =
      workload.parallel.pp > 1 ? 0 : static_cast<double>(workload.model.vocab) * static_cast<double>(workload.model.hidden);
  return std::max(largest_matrix(workload), table / static_cast<double>(shard_of(workload).head_tp));
}

// ZeRO-1 and 2 by whole tensors, as InternEvo's: the largest first, each to the rank that has least (hybrid_zero_optim.py).
void give_to_owners(const Workload& workload, ReplicaSync& sync) {
  sync.owners = std::min(sync.shard_ranks, stage_tensors(workload));
  sync.largest_tensor = largest_tensor(workload);
}

}  // namespace

ReplicaSync replica_sync(const Workload& workload) { return replica_sync(workload, ScheduleRegistry::get(workload.schedule).mirrors()); }

bool reduces_each_microbatch(const Workload& workload) {
  const int zero = workload.optimizer.zero_stage;
  const bool waits = workload.optimizer.no_sync && workload.microbatches() > 1;  // an only micro-batch is the last one
  return !waits && (zero == 3 || (zero == 2 && workload.parallel.pp == 1));
}

int shard_ranks(const Workload& workload, int replicas) {
  const Optimizer& optimizer = workload.optimizer;
  return optimizer.zero_stage > 0 && optimizer.shard_group > 0 ? optimizer.shard_group : replicas;
}

namespace {

// FSDP's streams (torch/distributed/fsdp/_runtime_utils.py, _reduce_grad; _fully_shard/_fsdp_collectives.py, foreach_reduce). In a
// pipeline, and with experts, where they are not told apart here, the sum keeps the others waiting.
bool sums_copies_beside(const Workload& workload, const ReplicaSync& sync) {
  const Optimizer& optimizer = workload.optimizer;
  const bool fully_sharded = optimizer.zero_stage == 3 && (optimizer.flat || optimizer.copies);
  return fully_sharded && sync.copies() > 1 && sync.overlap_gradients && workload.parallel.pp == 1 && !workload.model.moe &&
         !workload.offload_activations;
}

}  // namespace

ReplicaSync replica_sync(const Workload& workload, bool mirrors) {
  const int zero = workload.optimizer.zero_stage;
  ReplicaSync sync;
  const Parallel& parallel = workload.parallel;
  const int copies = mirrors ? 2 : 1;
  sync.ranks = parallel.dp * parallel.cp * copies;
  if (workload.model.moe) sync.expert_ranks = parallel.expert_replicas() * copies;
  sync.shards_parameters = zero == 3;
  sync.from_host = workload.offload_weights;
  sync.reduce_each_microbatch = reduces_each_microbatch(workload);
  sync.copied = zero == 3 && workload.optimizer.copies;
  sync.overlap_gradients = workload.overlap.dp_gradients;
  sync.overlap_parameters = workload.overlap.dp_parameters;
  sync.shard_ranks = shard_ranks(workload, sync.ranks);
  sync.gathers_weights = zero == 1 || zero == 2;
  sync.gradient_bytes = bytes_of(workload.precision.gradients);
  sync.weight_bytes = bytes_of(workload.precision.weights);
  sync.layer_weight_bytes = workload.precision.param_gather ? bytes_of(*workload.precision.param_gather) : sync.weight_bytes;
  sync.kept_layer_bytes = sync.weight_bytes;
  if (workload.lora.on() && workload.lora.nf4) {
    const bool values_alone = zero == 3 && !workload.optimizer.copies;  // scales are on every GPU (frozen_weights.hpp)
    sync.layer_weight_bytes = values_alone ? nf4_value : nf4_bytes;
    sync.kept_layer_bytes = nf4_bytes;
  }
  sync.trained_weight_bytes = bytes_of(workload.trained_weights());
  if (zero == 3 && workload.recompute.kind == RecomputeKind::full) sync.gathered_again = workload.optimizer.gathered_again;
  sync.all_reduces = workload.optimizer.all_reduces && sync.gathers_weights;
  if (sync.gathers_weights && workload.optimizer.by_owner) give_to_owners(workload, sync);
  // Muon needs whole matrices. Megatron-Core's layer-wise optimizer scatters gradients to their owners and gathers weights all the same.
  if (sync.gathers_weights && workload.optimizer.muon()) {
    sync.largest_tensor = largest_tensor(workload);
    sync.largest_matrix = largest_matrix(workload);
  }
  const bool by_adapter = workload.optimizer.by_adapter && workload.lora.on();
  if (zero == 3 && (workload.optimizer.by_tensor || by_adapter)) {
    sync.overlap_gradients = sync.overlap_parameters = false;
    sync.by_tensor = workload.optimizer.by_tensor;
    sync.adapter_calls = by_adapter && !sync.by_tensor ? adapter_tensors(workload) : 0;
    sync.calls_per_layer = 1 + sync.adapter_calls;
  }
  sync.copies_beside = sums_copies_beside(workload, sync);
  return sync;
}

}  // namespace rehearse::workloads
