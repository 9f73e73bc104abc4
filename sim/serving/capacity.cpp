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
  if (const workloads::MixerShare& mixer = operators.mixers.share; operators.mixers.layers > 0) {
    const double beside = mixer.convolved() + mixer.values() * mixer.element;  // a scan's inputs and output, its states in fp32
    widest = std::max(widest, beside + bytes_of(workloads::DType::fp32) * mixer.states());
  }
  const double rows = std::min(habits.sequences, habits.tokens);
  const double logits = rows * plan.model.vocab / plan.tp * logit_bytes;
  return habits.tokens * (2 * operators.hidden_bytes + widest) + logits;
}

}  // namespace

int page_tokens(const workloads::InstancePlan& plan, const EngineHabits& habits, int tried) {
  if (!plan.model.mixer || !habits.pages_of_states) return habits.page;
  const double page = habits.page * kv_bytes_per_token(plan).per_layer;
  return habits.page * static_cast<int>(std::max(1.0, std::ceil(state_bytes(plan, tried).one / page)));
}

std::int64_t state_pages(const workloads::InstancePlan& plan, const EngineHabits& habits, int tried) {
  if (!plan.model.mixer) return 0;
  const workloads::CachingLayers layers = caching_layers(plan.model);
  if (habits.pages_of_states) return std::int64_t{1 + tried} * ((layers.mixers + layers.attention - 1) / layers.attention);
  const double page = habits.page * kv_bytes_per_token(plan).per_gpu;
  return static_cast<std::int64_t>(std::ceil(layers.mixers * state_bytes(plan, tried).all / page));
}

std::int64_t InstanceMemory::tokens() const { return left() > 0 ? static_cast<std::int64_t>(left() / kv_per_token) : 0; }

InstanceMemory instance_memory(const workloads::InstancePlan& plan, const workloads::PassOperators& operators, const Gpu& gpu,
                               const Software& software, const EngineHabits& habits) {
  InstanceMemory memory;
  memory.whole = gpu.memory_bytes;
  memory.limit = gpu.memory_bytes * habits.memory_fraction;
  memory.cache_share = habits.cache_share;
  for (const workloads::LayerOperators& layer : operators.layers) memory.weights += layer.layers * layer.weight_bytes / plan.pp;
  if (plan.redundant > 0 && plan.model.moe) {
    const double copies = static_cast<double>(plan.redundant) / plan.ep;
    double expert = 0;
    for (const workloads::TokenOperator& line : operators.experts.operators) expert += line.bytes / std::max(1, operators.experts.experts);
    int layers = 0;
    for (const workloads::LayerOperators& layer : operators.layers) layers += layer.has_experts ? layer.layers : 0;
    memory.weights += copies * expert * layers / plan.pp;
  }
  memory.weights += plan.pp > 1 ? operators.end_bytes / 2 : operators.end_bytes;
  memory.activations = activation_bytes(plan, operators, habits);
  memory.slots = static_cast<double>(habits.sequences) * plan.model.vocab * habits.slot_logit_bytes;
  memory.context = software.memory.context_bytes + (plan.gpus() > 1 ? software.memory.communicator_bytes : 0);
  memory.kv_per_token = kv_bytes_per_token(plan).per_gpu;
  return memory;
}

}  // namespace rehearse::sim
