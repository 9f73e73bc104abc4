// Which tensors a unit (embedding, layer, head) takes from the allocator and gives back, one by one and in program order: here as
// Megatron-Core with Transformer Engine does it (megatron/core/transformer, megatron/core/tensor_parallel/layers.py,
// transformer_engine/pytorch/module; 0.12 to 0.14). workloads/unit_memory has the sums; this has the order, which decides what the caching
// allocator keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {

struct TensorStep {
  // hold: taken when it is first met in the training, never given back. cached: taken, and given back when the forward of the micro-batch
  // is over. gradient: of a tensor of the weights, which whoever adds gradients up or reduces them gives back. pass_on: the tensor by
  // another name from now on. wait: the host for the GPU.
  enum class Kind : std::uint8_t { take, give, hold, cached, gradient, pass_on, wait };
  static constexpr std::size_t most_held = 24;
  // Bytes of a hold: as many as cuBLAS takes on this GPU, called by PyTorch and by Transformer Engine.
  static constexpr double workspace = -1, engine_workspace = -2;
  Kind kind = Kind::take;
  int tensor = 0;                  // of the unit and micro-batch; hold: of the rank, below most_held
  double bytes = 0, per_pair = 0;  // and of every pair of token and expert that the rank's experts get
  bool communicated = false;       // take: NCCL's stream uses it too
  bool waited = false;             // and computation waits for what gathers or scatters it
  bool aside = false;              // take: of the stream of a communication, though what computes reads it
  int name = 0;                    // pass_on: the other
};

struct UnitTensors {
  // Tensors that come from or go to a neighbour.
  static constexpr int input = 0, output = 1, output_gradient = 2, input_gradient = 3, first_own = 4;

  // The embedding has no input, the head no output; the head's backward needs no gradient. Backward gives all back that forward left, its
  // own input too, and the gradient that it got.
  std::vector<TensorStep> forward, backward;
  int tensors = first_own;
  bool again = false;  // backward begins with the forward once more
};

// Whether the order is known: flash attention, 16-bit products, ZeRO up to stage 1, whole backwards one at a time; on Megatron-Core's stack
// with context parallelism by all-to-all if any, also of models with experts and latent attention; on nanotron's dense models with neither
// that nor recomputation, a gated MLP, and sequence parallelism where there is tensor parallelism; on PyTorch's own as torch_tensors.hpp
// says, by ZeRO-3 too.
[[nodiscard]] bool knows_tensors(const workloads::Workload& workload, const workloads::MemoryHabits& habits);

// Whether the head multiplies by the embedding's table of words, in one stage, and has its gradient added to that.
[[nodiscard]] bool shares_table(const workloads::Workload& workload);

// Of a unit that knows_tensors() speaks of.
[[nodiscard]] UnitTensors tensors_of(const workloads::Workload& workload, const workloads::MemoryHabits& habits,
                                     const workloads::Unit& unit);

// Parameters of a unit's tensors but its routed experts', and of those, in the order in which they are made.
[[nodiscard]] std::vector<double> parameters_of(const workloads::Workload& workload, const workloads::Unit& unit);
[[nodiscard]] std::vector<double> expert_parameters_of(const workloads::Workload& workload, const workloads::Unit& unit);

}  // namespace rehearse::sim
