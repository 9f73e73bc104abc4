// Bytes that one GPU holds: for its share of the model all the time, and for each unit (embedding, layers, head) while it works on a
// micro-batch. Equations (4), (25), (27), (30) and (32); docs/memory.md.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "workloads/expert_loads.hpp"
#include "workloads/plan.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads {

// Whose tensors, one by one in program order, a stack has where that is known (sim/memory/unit_tensors.hpp).
enum class TensorOrder : std::uint8_t { megatron_core, megatron_2021, nanotron, torch };

// How far the host is ahead of the GPU, and so how late what collectives read and wrote comes free (sim/memory/host_lead.hpp).
enum class HostAhead : std::uint8_t { units, none, warm_up, queue, messages };

// Of which collectives PyTorch marks what they read and write as used by NCCL's stream (record_stream in ProcessGroupNCCL.cpp), so that it
// comes free only when the GPU has come past it. all: up to 2.1. beside: not of gathers and reductions to shards that the stream waits for
// (pull request 111431; 2.2). none: since 2.8 (pull request 150398).
enum class Recorded : std::uint8_t { all, beside, none };

// When ZeRO-1 and 2 keep of an FP32 master copy the 16 bits alone that the BF16 weights lack: where moments are in fewer bits than it, or
// always.
enum class MasterRemainders : std::uint8_t { never, narrow_moments, always };

// What a training stack does with memory that the job does not say (platforms/software/*.yaml).
struct MemoryHabits {
  // The weight-gradient product adds into the gradient buffer and hands autograd an empty tensor of the weights' shape and type instead:
  // one per matrix of a layer for good, and one for the head while its backward runs.
  bool gradient_placeholders = false;
  double bucket_bytes = 0;                   // buffers in which gradients are reduced and weights gathered, kept for good, with ZeRO
  std::optional<double> zero3_bucket_bytes;  // with ZeRO-3, where they are others
  // ZeRO-3 has so many gathered parameters at a time, and the head's beside, in place of those of the units at hand; gradients pass through
  // the buckets tensor by tensor, so that no unit's lie whole on their way. 0: a unit's are gathered and reduced together.
  double live_parameters = 0;
  // ZeRO: bytes that the update takes beside gradients and states for each parameter that it works on, with ZeRO-3 of so many at a time;
  // below it the buckets are free by then.
  double update_bytes = 0;
  std::optional<double> update_at_once;
  bool foreach_update = false;  // torch's foreach Adam: the roots of all second moments that it works on are there at once
  // Backward's gradients stay in the weights' type beside those that are added up: with bf16 weights these are whole, with fp16 weights
  // only ZeRO's update has them, of its shard.
  bool half_gradients = false;
  // Below ZeRO: gradients in fewer bits are copied to FP32 for the update, which keeps the copies.
  bool main_gradients = false;
  // Core attention by a product and a softmax: the product is handed a tensor of the scores' size that all layers share, kept for good.
  bool scores_buffer = false;
  bool narrow_gradients = false;  // gradients are added up in the weights' type where the job does not name theirs
  double loss_bytes = 0;          // per logit, most that the loss holds at a time, its logits included; 0: by the fusion
  // A head in pieces (loss_pieces) is a chain of functions compiled apart: until its backward each keeps its logits and, under autocast,
  // its own cast of the table; there each makes a gradient of the table beside the sum.
  bool pieces_apart = false;
  bool outputs_kept = false;  // what the model returned, logits in fp32, is held until the backward of its micro-batch is over
  // Of a layer's gathered input (tensor parallelism), the share that its blocks in flight hold up until backward.
  double kept_gathers = 0;
  bool ddp_buckets = false;  // without ZeRO: gradients as autograd makes them lie in buckets beside those that are added up
  // Gradients stay as autograd makes them, in the weights' type, until the backward of their micro-batch is over, and are added up then.
  bool added_after_backward = false;
  // ZeRO-1 and 2: new weights are gathered from a copy of the rank's piece, into a copy of all pieces and one of the whole.
  bool gathers_copies = false;
  TensorOrder order = TensorOrder::megatron_core;
  HostAhead host_ahead = HostAhead::units;
  PassKernels launches{0, 0};  // that the host issues for a layer: what `queue` counts
  Recorded recorded = Recorded::all;
  bool expandable_segments = false;  // PYTORCH_CUDA_ALLOC_CONF of its launcher; on NVIDIA's GPUs
  // Gradients are given back after the update and made anew by the next backward (zero_grad(set_to_none=True)).
  bool gradients_freed = false;
  MasterRemainders master_remainders = MasterRemainders::never;
  bool sharded_master = false;  // ZeRO-3: the shard of the weights is their master copy; there is no other
  // With adapters: units of frozen weights hold the input of a layer that is computed again, and with it its gradient, until the backward
  // of the micro-batch is over (FSDP's hook: with ZeRO-2 and 3).
  bool frozen_inputs = false;
  // Below ZeRO-3, products in fewer bits than the weights: two copies of layers' weights in the products' type are kept between steps.
  bool narrow_copies = false;
  // Activations leave chunk by chunk, each while the next forward of its stage runs, and come back into two buffers of a chunk's size that
  // stay for good.
  bool offloads_chunks = false;
  bool activation_in_place = false;  // a gated MLP's fused activation writes the gradients of its inputs over them (writes_over_halves)
  // ZeRO-3: products keep the gathered weights that they read until their backward, beside which they are gathered once more for it.
  bool saves_weights = false;
  bool loads_whole = false;   // ZeRO-3: the whole model lies on the GPU, tensor by tensor, before it is cut into shards
  bool joins_on_gpu = false;  // ZeRO-1 and 2: the model lies there so before it is joined in one buffer
  bool scans_layers = false;  // layers are a loop that saves every operand of a derivative (scanned_operands)
  // A compiler plans every buffer of the step: weights are gathered and gradients reduced matrix by matrix, gradients are written over what
  // they are of, and what is computed again is there while it is read. The least that the step needs; where there is room it takes more.
  bool planned = false;
};

// Whether of a gated MLP's gradients that of its product alone takes room of its own: by the stack's habit, or compiled, since Inductor
// gives the product back before the activation's kernel and writes that kernel's gradients over what it was the last to read.
[[nodiscard]] bool writes_over_halves(const Workload& workload, const MemoryHabits& habits);

struct StaticMemory {
  double weights = 0, gradients = 0, optimizer = 0;
  double temporary = 0;  // buffers that are never given back
  double update = 0;     // while the optimizer works alone: copies of gradients, of new weights
  double host = 0;       // in the host's memory: states and gradients of an optimizer that runs there
  [[nodiscard]] double total() const { return weights + gradients + optimizer + temporary; }  // on the GPU
};
// Bytes of moments for each of these parameters, in the mean: two of Adam's, one of Muon's, which are the layers'.
[[nodiscard]] double moment_bytes_per_parameter(const Workload& workload, const Parameters& own);

// Of a parameter that is trained, a master copy beside weights in fewer bits, or what these lack of it (master_remainders); 0: none.
[[nodiscard]] double master_bytes_per_parameter(const Workload& workload, const MemoryHabits& habits);

// own: of the pipeline stage, before ZeRO.
[[nodiscard]] StaticMemory static_memory(const Workload& workload, const MemoryHabits& habits, const Parameters& own);
// The same with what all stages share, in numbers alone. standing: standing_bytes().
[[nodiscard]] StaticMemory static_memory(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, double standing,
                                         const Parameters& own);
// Whether units of frozen weights hold their inputs, of layers that are computed again.
[[nodiscard]] bool holds_frozen_inputs(const Workload& workload, const MemoryHabits& habits);
// Of the habit gradient_placeholders: one for each matrix of a layer, for good.
[[nodiscard]] double placeholder_bytes(const Workload& workload, const MemoryHabits& habits);
// Of the habit scores_buffer: what a micro-batch's scores take in a layer.
[[nodiscard]] double scores_buffer_bytes(const Workload& workload, const MemoryHabits& habits);
// Both: tensors for good whose size is that of a layer's, however many layers there are.
[[nodiscard]] double standing_bytes(const Workload& workload, const MemoryHabits& habits);

struct UnitMemory {
  double activations = 0;  // from the start of its forward to the end of its (last) backward
  // While forward or backward runs: tensors that end with it, what recomputation brings back, gradients of activations.
  double forward_temporary = 0, backward_temporary = 0;
  double weight_temporary = 0;  // while its weight gradient is made: with backward, or in its own slot when the schedule splits backward
  // While forward or backward runs: what tensor and context parallelism gather, reduce or pass on.
  double forward_communication = 0, backward_communication = 0;
  double gradients = 0;  // of its weights as they are made, where they stay until the backward of the micro-batch is over
  double left = 0;       // of its activations and their gradients, what stays behind its backward until that of the micro-batch is over
  double gathered = 0;   // ZeRO-3: its weights, gathered
  double bucket = 0;     // ZeRO-2 and 3: its gradients before they are reduced and sharded
  // Of backward_temporary: given back before the unit makes its weights' gradients; of weight_temporary: itself what is reduced.
  double gone_before_gradients = 0;
  // The embedding's gradients are reduced when its backward is over and nothing comes behind it: its weights are gone by then, and the
  // shard that the reduction makes is among the gradients of its turn where those are made anew.
  bool reduced_last = false, shard_counted = false;
  bool in_root = false;  // with ZeRO-3 its weights are gathered with those of the root's unit, for the whole step (StaticMemory)
  // Of a layer's experts, for every (token, expert) pair that they get: added to the first three by with_tokens.
  double received_activations = 0, received_forward = 0;
  // Of their backward the moments at which most may be there, with the gradients of their matrices that are whole by then, bytes.
  struct PairMoment {
    double per_pair = 0, matrices = 0;
  };
  std::array<PairMoment, 3> received_backward{};

  [[nodiscard]] UnitMemory with_tokens(double pairs) const;
  // With what is gathered and reduced of its parameters at once (exchanged_at_once).
  [[nodiscard]] UnitMemory with_replicas(const ReplicaSync& sync, const Parameters& what) const;
};
// Parameters of a unit that replicas gather, and whose gradients they reduce, at once: all of them, or a matrix where buffers are planned.
[[nodiscard]] Parameters exchanged_at_once(const Workload& workload, const MemoryHabits& habits, const Unit& unit);
// Without what its replicas exchange, and without tokens.
[[nodiscard]] UnitMemory unit_memory(const Workload& workload, const MemoryHabits& habits, const Unit& unit);

// [chunk][unit] of a stage's program.
[[nodiscard]] std::vector<std::vector<UnitMemory>> unit_memories(const Workload& workload, const MemoryHabits& habits,
                                                                 const ReplicaSync& sync, const StageProgram& stage);

// The units of a stage as one of its ranks holds them: with the tokens that its experts get.
class RankMemories {
 public:
  // loads: of a model with experts, else null. It must outlive this.
  RankMemories(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const StageProgram& stage,
               const ExpertLoads* loads, int expert_rank);
  [[nodiscard]] UnitMemory at(int chunk, int unit, int microbatch) const;
  [[nodiscard]] const std::vector<UnitMemory>& chunk(int chunk) const { return units_[static_cast<std::size_t>(chunk)]; }

 private:
  const StageProgram& stage_;
  std::vector<std::vector<UnitMemory>> units_;
  const ExpertLoads* loads_;
  int expert_rank_;
};

}  // namespace rehearse::workloads
