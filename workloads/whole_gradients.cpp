#include "workloads/whole_gradients.hpp"

#include "workloads/operators/shard.hpp"

namespace rehearse::workloads {

namespace {

bool adds_gradients(const Slot& slot) { return slot.kind == Slot::Kind::backward || slot.kind == Slot::Kind::backward_weight; }

}  // namespace

std::vector<ChunkGradients> chunk_gradients(std::span<const std::span<const Slot>> slots, std::size_t chunks) {
  constexpr std::size_t never = -1;
  std::vector<std::size_t> first(chunks, never), last(chunks, 0);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    for (const Slot& slot : slots[s]) {
      if (!adds_gradients(slot)) continue;
      const auto chunk = static_cast<std::size_t>(slot.chunk);
      if (first[chunk] == never) first[chunk] = s;
      last[chunk] = s;
    }
  }
  std::vector<ChunkGradients> states(slots.size() * chunks, ChunkGradients::absent);
  for (std::size_t c = 0; c < chunks; ++c) {
    for (std::size_t s = first[c]; s < slots.size(); ++s)
      states[s * chunks + c] = s <= last[c] + 1 ? ChunkGradients::whole : ChunkGradients::reduced;
  }
  return states;
}

bool shards_gradients_at_the_end(const Workload& workload, const ReplicaSync& sync) {
  return workload.optimizer.zero_stage >= 2 && !sync.reduce_each_microbatch && sync.replicated();
}

double gradient_bytes(const Workload& workload, const MemoryHabits& habits) {
  const DType weights = workload.precision.weights;
  const double added_up = bytes_of(workload.precision.gradients);
  const bool replicas = workload.parallel.dp * workload.parallel.cp > 1;
  if (habits.ddp_buckets && workload.optimizer.zero_stage == 0 && replicas) {
    return added_up + (autocasts(workload) ? bytes_of(DType::fp32) : bytes_of(weights));
  }
  const double state = bytes_of(workload.precision.optimizer);
  if (habits.main_gradients && workload.optimizer.zero_stage == 0 && added_up < state) return added_up + state;
  if (!habits.half_gradients || bytes_of(weights) >= added_up) return added_up;
  return bytes_of(weights) + (weights == DType::fp16 ? 0 : added_up);
}

bool makes_gradients_anew(const Workload& workload, const MemoryHabits& habits) {
  const bool one_buffer = workload.optimizer.zero_stage == 3 && !habits.sharded_master;
  return habits.gradients_freed && !one_buffer && workload.microbatches() == 1;
}

double kept_gradients(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const Parameters& what) {
  // Shards go to the host's memory as they are reduced (DeepSpeed's async_accumulate_grad_in_cpu_via_gpu and partition_grads, FSDP's
  // CPUOffload).
  if (workload.optimizer.on_cpu && sync.reduce_each_microbatch) return 0;
  // DeepSpeed's ZeRO-1 reduces while the last micro-batch's backward runs.
  const bool an_only_one = habits.live_parameters > 0 && workload.optimizer.zero_stage == 1 && workload.microbatches() == 1;
  const bool sharded = sync.reduce_each_microbatch || shards_gradients_at_the_end(workload, sync) || an_only_one;
  return (sharded ? sync.shard(what) : what.trained()) * gradient_bytes(workload, habits);
}

double beside_the_shard(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const Parameters& what) {
  return (what.trained() - sync.shard(what)) * gradient_bytes(workload, habits);
}

void list_whole_gradients(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const StageProgram& stage,
                          std::vector<double>& bytes) {
  bytes.clear();
  if (!shards_gradients_at_the_end(workload, sync)) return;
  for (const Parameters& chunk : stage.of_chunk) bytes.push_back(beside_the_shard(workload, habits, sync, chunk));
}

double whole_now(std::span<const ChunkGradients> states, std::span<const double> bytes, bool overlapped) {
  double now = 0;
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    if (lie_whole(states[c], overlapped)) now += bytes[c];
  }
  return now;
}

}  // namespace rehearse::workloads
