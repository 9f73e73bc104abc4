// The training of one rank as its allocator sees it.
#pragma once

#include <vector>

#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/unit_tensors.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {

// Slots of a stage from one moment at which it holds no activations to the next.
struct TrainedRound {
  std::vector<workloads::Slot> slots;
  bool as_before = false;  // as the round before it, of later micro-batches
};

// Bytes that cuBLAS takes for each thread that makes products by PyTorch, and for each stream of Transformer Engine's.
struct Workspaces {
  double torch = 0, engine = 0;
};

// What is the same for every rank of a stage. Workload, habits and program must outlive it.
struct TrainedStage {
  // workspaces: of cuBLAS; none: with what the context takes. Of a model with experts the rank at this place of its group, in this step of
  // the routing.
  TrainedStage(const workloads::Workload& workload, const workloads::MemoryHabits& habits, int stage,
               const workloads::StageProgram& program, const Workspaces& workspaces = {}, int expert_rank = 0, int step = 0);

  // Every rank has a piece of each tensor (nanotron, PyTorch's FSDP), not of one buffer.
  [[nodiscard]] bool by_tensor() const { return nanotron() || (torch() && habits.sharded_master); }
  [[nodiscard]] bool nanotron() const { return habits.order == workloads::TensorOrder::nanotron; }
  // Messages that run beside something are not waited for.
  [[nodiscard]] workloads::HostAhead host_ahead() const {
    using workloads::HostAhead;
    if (habits.host_ahead == HostAhead::warm_up && workload.parallel.pp == 1) return HostAhead::none;
    return habits.host_ahead == HostAhead::messages && workload.overlap.pp ? HostAhead::queue : habits.host_ahead;
  }
  [[nodiscard]] bool torch() const { return habits.order == workloads::TensorOrder::torch; }
  // Autograd makes a gradient of each tensor (rank_weights.hpp).
  [[nodiscard]] bool makes_each_gradient() const { return habits.order != workloads::TensorOrder::megatron_core; }
  // Parameters of the tensors of a unit of the first chunk.
  [[nodiscard]] const std::vector<double>& tensors_of_unit(std::size_t unit) const { return kind_parameters[kind_of.front()[unit]]; }

  const workloads::Workload& workload;
  const workloads::MemoryHabits& habits;
  const workloads::StageProgram& program;
  std::vector<UnitTensors> kinds;                    // distinct ones
  std::vector<std::vector<double>> kind_parameters;  // [kind] of each tensor
  std::vector<double> kind_pairs;                    // [kind] in the first micro-batch
  std::vector<std::vector<std::size_t>> kind_of;     // [chunk][unit]
  // Of each tensor, in the order in which they are made; routed experts have a buffer of their own, which their own replicas share.
  std::vector<double> parameters, expert_parameters;
  int expert_shards = 1;
  // Pairs of token and expert that the rank gets, [micro-batch][chunk][unit]; none where they are even or there are no experts.
  std::vector<std::vector<std::vector<double>>> pairs;
  [[nodiscard]] bool uneven() const { return !pairs.empty(); }
  int microbatches = 0;              // at most 2 pp: what follows repeats the same tensors; where they differ at most 64
  std::vector<TrainedRound> rounds;  // of these
  Workspaces workspaces;
  double hidden = 0;  // bytes of the hidden states between two stages
};

// The tensors, or parts of them, in piece `shard` of `shards` of the optimizer: how many parameters of each. All else is the same for the
// ranks of a stage.
[[nodiscard]] std::vector<double> parameters_of_shard(const TrainedStage& stage, int shard, int shards);

// Model, optimizer and three steps of the rank with these parameters of the optimizer, on a GPU with device_bytes for tensors.
[[nodiscard]] AllocatorPeaks trained(const TrainedStage& stage, const std::vector<double>& own_parameters, double device_bytes);

}  // namespace rehearse::sim
