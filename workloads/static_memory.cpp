// What lies on a GPU however its passes go: weights, gradients, the optimizer's states, buffers, and what the update takes.
#include <algorithm>

#include "workloads/frozen_weights.hpp"
#include "workloads/operators/adapters.hpp"
#include "workloads/operators/casts.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/saved_weights.hpp"
#include "workloads/unit_memory.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::workloads {
namespace {

// The moments, a master copy of weights that are kept in fewer bits, and with ZeRO a copy of gradients that are kept in fp16 only.
double optimizer_bytes(const Workload& workload, const MemoryHabits& habits, const Parameters& own) {
  const double state = bytes_of(workload.precision.optimizer);
  const bool sharded_copy = habits.half_gradients && workload.precision.weights == DType::fp16 && workload.optimizer.zero_stage > 0;
  return moment_bytes_per_parameter(workload, own) + master_bytes_per_parameter(workload, habits) + (sharded_copy ? state : 0);
}

// Of a weight, copies of fewer bits that products read: by rows, unless it is kept so, and by columns where these are read apart.
double narrow_copy_bytes(const Workload& workload, const ReplicaSync& sync, DType products) {
  const double narrow = bytes_of(products);
  if (narrow >= bytes_of(workload.precision.weights)) return 0;
  return (weight_copies(workload) - (narrow < sync.layer_weight_bytes ? 0 : 1)) * cast_copy_bytes(workload, products);
}

// While the update runs, beside what stays and what `root` holds.
double update_memory(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const Parameters& own, double root) {
  const int zero = workload.optimizer.zero_stage;
  const bool on_gpu = !workload.optimizer.on_cpu;
  const double updated = sync.updated(own);
  double bytes = 0;
  if (zero > 0 && on_gpu) {
    const double at_once = zero == 3 ? std::min(updated, habits.update_at_once.value_or(updated)) : updated;
    bytes = std::max(0.0, habits.update_bytes * at_once - (zero < 3 ? habits.bucket_bytes : 0));
  }
  if (habits.gathers_copies && (zero == 1 || zero == 2) && sync.replicated())
    bytes += (2 * own.trained() + sync.shard(own)) * sync.weight_bytes;
  if (habits.foreach_update && on_gpu) bytes += bytes_of(workload.precision.moments) * updated;
  return std::max(0.0, bytes - root);
}

}  // namespace

double moment_bytes_per_parameter(const Workload& workload, const Parameters& own) {
  const double moments = workload.optimizer.muon() && own.all > 0 ? 2 - own.layers / own.all : 2;
  return moments * bytes_of(workload.precision.moments);
}

double master_bytes_per_parameter(const Workload& workload, const MemoryHabits& habits) {
  const Precision& precision = workload.precision;
  const double state = bytes_of(precision.optimizer), weight = bytes_of(workload.trained_weights());
  if (weight >= state) return 0;
  const bool kept_narrow = precision.param_gather && bytes_of(*precision.param_gather) < weight;
  const bool apart = habits.master_remainders == MasterRemainders::always ||
                     (habits.master_remainders == MasterRemainders::narrow_moments && bytes_of(precision.moments) < state);
  const int zero = workload.optimizer.zero_stage;
  const bool of_bf16 = workload.trained_weights() == DType::bf16 && precision.optimizer == DType::fp32 && !kept_narrow;
  return apart && of_bf16 && (zero == 1 || zero == 2) ? state - weight : state;
}

double scores_buffer_bytes(const Workload& workload, const MemoryHabits& habits) {
  if (!habits.scores_buffer || workload.attention != Attention::unfused) return 0;
  const Shard shard = shard_of(workload);
  return static_cast<double>(shard.tokens * shard.heads * shard.sequence) * shard.element;
}

double standing_bytes(const Workload& workload, const MemoryHabits& habits) {
  return placeholder_bytes(workload, habits) + scores_buffer_bytes(workload, habits);
}

StaticMemory static_memory(const Workload& workload, const MemoryHabits& habits, const Parameters& own) {
  return static_memory(workload, habits, replica_sync(workload), standing_bytes(workload, habits), own);
}

StaticMemory static_memory(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, double standing,
                           const Parameters& own) {
  const int zero = workload.optimizer.zero_stage;
  const bool main_beside = bytes_of(workload.trained_weights()) < bytes_of(workload.precision.optimizer);
  const bool no_copy = main_beside && (autocasts(workload) || (zero == 3 && habits.sharded_master));
  StaticMemory memory;
  const double trained_weights = no_copy ? 0 : sync.shard(own) * sync.trained_weight_bytes;
  const FrozenBytes frozen = zero == 3 ? frozen_bytes_held(workload, sync, own) : FrozenBytes{};
  memory.weights = zero == 3 ? frozen.on_gpu + trained_weights : no_copy ? 0 : sync.gathered_bytes(own);
  memory.gradients = kept_gradients(workload, habits, sync, own);
  const double updated = sync.updated(own);
  (workload.optimizer.on_cpu ? memory.host : memory.optimizer) = updated * optimizer_bytes(workload, habits, own);
  // Beside the states the host receives the gradients and makes the new weights.
  if (workload.optimizer.on_cpu) memory.host += updated * (bytes_of(workload.precision.gradients) + sync.trained_weight_bytes);
  if (workload.offload_weights) {  // those that are trained are the new weights already
    memory.host += frozen.on_host;
    memory.weights -= trained_weights;
  }
  if (zero > 0) memory.temporary = zero == 3 ? habits.zero3_bucket_bytes.value_or(habits.bucket_bytes) : habits.bucket_bytes;
  // Where layers save their weights until backward, those that are live at its peak are among them.
  const bool saved = saves_gathered(workload, habits, workload.recompute.kind == RecomputeKind::full);
  if (zero == 3 && sync.replicated() && !saved) memory.temporary += std::min(habits.live_parameters, own.all) * sync.weight_bytes;
  memory.temporary += standing;
  const bool gathers = zero == 3 && (sync.replicated() || sync.copied);
  const double root = workload.optimizer.root && gathers ? sync.gathered_bytes(own.ends()) : 0;  // not in the update
  memory.temporary += root;
  memory.update = update_memory(workload, habits, sync, own, root);
  if (habits.narrow_copies && zero < 3) {
    const double each = narrow_copy_bytes(workload, sync, workload.precision.compute);
    const double more = narrow_copy_bytes(workload, sync, workload.precision.of_experts()) - each;
    memory.temporary += each * own.layers + more * own.experts;
  }
  return memory;
}

}  // namespace rehearse::workloads
