#include "sim/serving/capacity.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

constexpr double logit_bytes = 4;  // samplers work in fp32

// The peak of a pass: hidden states and residual, and the widest product's output with its input beside it; logits.
double activation_bytes(const workloads::InstancePlan& plan, const workloads::PassOperators& operators, const EngineHabits& habits) {
  double widest = 0;
  for (const workloads::LayerOperators& layer : operators.layers) {
    for (const workloads::TokenOperator& line : layer.operators) widest = std::max(widest, line.bytes_per_token);
  }
  const double rows = std::min(habits.sequences, habits.tokens);
  const double logits = rows * plan.model.vocab / plan.tp * logit_bytes;
  return habits.tokens * (2 * operators.hidden_bytes + widest) + logits;
}

}  // namespace

std::int64_t InstanceMemory::tokens() const { return left() > 0 ? static_cast<std::int64_t>(left() / kv_per_token) : 0; }

InstanceMemory instance_memory(const workloads::InstancePlan& plan, const workloads::PassOperators& operators, const Gpu& gpu,
                               const Software& software, const EngineHabits& habits) {
  InstanceMemory memory;
  memory.whole = gpu.memory_bytes;
  memory.limit = gpu.memory_bytes * habits.memory_fraction;
  memory.cache_share = habits.cache_share;
  for (const workloads::LayerOperators& layer : operators.layers) memory.weights += layer.layers * layer.weight_bytes / plan.pp;
  if (plan.redundant > 0 && plan.model.moe) {
    const workloads::MoeSpec& moe = *plan.model.moe;
    const double copies = static_cast<double>(plan.redundant) / plan.ep;
    double expert = 0;
    for (const workloads::TokenOperator& line : operators.experts.operators) expert += line.bytes / std::max(1, operators.experts.experts);
    memory.weights += copies * expert * (plan.model.layers - moe.first_dense) / plan.pp;
  }
  memory.weights += plan.pp > 1 ? operators.end_bytes / 2 : operators.end_bytes;
  memory.activations = activation_bytes(plan, operators, habits);
  memory.slots = static_cast<double>(habits.sequences) * plan.model.vocab * habits.slot_logit_bytes;
  memory.context = software.memory.context_bytes + (plan.gpus() > 1 ? software.memory.communicator_bytes : 0);
  memory.kv_per_token = kv_bytes_per_token(plan).per_gpu;
  return memory;
}

}  // namespace rehearse::sim
