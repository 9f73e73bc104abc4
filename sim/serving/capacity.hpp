// What an instance's memory leaves for the cache of keys and values.
#pragma once

#include <cstdint>

#include "sim/cost/engine_habits.hpp"
#include "sim/cost/gpu.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {

// Bytes on one GPU, the fullest.
struct InstanceMemory {
  double whole = 0;  // of the GPU
  double limit = 0;  // what the engine may take
  double cache_share = 1;
  double weights = 0, activations = 0, context = 0;
  double slots = 0;  // what the decoder has ready for the logits of as many sequences as there may be
  double kv_per_token = 0;
  [[nodiscard]] double left() const { return cache_share * (limit - weights - activations - slots - context); }
  // Of one attention replica; 0 where not even one fits.
  [[nodiscard]] std::int64_t tokens() const;
};

// Tokens of a page of the cache, where so many are tried beside the next one: the engine's, or of a model with mixers as many of these as
// hold a layer's state (vLLM: `_align_hybrid_block_size` in vllm/platforms/interface.py).
[[nodiscard]] int page_tokens(const workloads::InstancePlan& plan, const EngineHabits& habits, int tried);
// Pages that a sequence takes beside those of its tokens, for the states of its mixers. A page is of all layers with attention; of an
// engine that gives each state a page of one layer, as many mixers share one as there are such layers (vLLM's groups of layers,
// vllm/v1/core/kv_cache_utils.py).
[[nodiscard]] std::int64_t state_pages(const workloads::InstancePlan& plan, const EngineHabits& habits, int tried);

[[nodiscard]] InstanceMemory instance_memory(const workloads::InstancePlan& plan, const workloads::PassOperators& operators, const Gpu& gpu,
                                             const Software& software, const EngineHabits& habits);

}  // namespace rehearse::sim
