// What one GPU of an instance computes and communicates in a pass, as lines over the tokens that run through it: the forward operators of
// training (workloads/operators) without what only training does. No time in here.
//
// Engines fuse the residual sum into the norm behind it, and quantisation into the norm or activation before a product: neither is a kernel
// of its own. A 4-bit checkpoint of a model with experts has 4 bits in its MLPs and experts alone; attention stays in 16 (NVIDIA's and
// OpenAI's published checkpoints). Head and router stay in 16 bits in checkpoints of any width (GPTQ's, AWQ's, FP8 as they are published).
#pragma once

#include <vector>

#include "workloads/mixer.hpp"
#include "workloads/operators.hpp"
#include "workloads/serving/cache_bytes.hpp"
#include "workloads/serving/instance_plan.hpp"

namespace rehearse::workloads {

// An operator whose work grows by equal parts with the tokens.
struct TokenOperator {
  Operator shape;  // of one token
  double bytes = 0, bytes_per_token = 0;
  bool widened = false;  // a product in 16 bits of weights in 8 or 4
  [[nodiscard]] Operator at(double tokens) const;
};

// A collective whose bytes do.
struct TokenCall {
  Communication call;  // of one token
  [[nodiscard]] Communication at(double tokens) const;
};

// The routed experts of a layer on one rank: lines over (token, expert) pairs.
struct ExpertOperators {
  std::vector<TokenOperator> operators;  // `bytes`: weights of all of the rank's experts
  int experts = 0;                       // the rank's own
  double sent_bytes = 0;                 // of one token on its way to them, in 16 bits
};

struct LayerOperators {
  int layers = 0;  // so many equal ones in the model
  std::vector<TokenOperator> operators;
  std::vector<TokenCall> calls;
  bool has_experts = false;
  Reach reach = Reach::sequence;
  double weight_bytes = 0;  // of one layer on one GPU
};

// One query against a cache of keys and values, of one attention layer on one GPU.
struct CacheAttention {
  double flops_per_pair = 0;       // per (query, key) pair: scores and values
  double bytes_per_token = 0;      // of the cache, per token in it
  double head_flops_per_pair = 0;  // a prompt's attention, latent states expanded to heads
  int heads = 0, kv_heads = 0, head_dim = 0;
  double activation_bytes = 0;  // queries in, context out, per query token
};

// What layers have in the place of attention, on one GPU: what it runs between the projections goes by sequences too (mixer.hpp).
struct MixerLayers {
  int layers = 0;  // so many in the model
  MixerSpec spec;
  MixerShare share;
};

struct PassOperators {
  std::vector<LayerOperators> layers;
  MixerLayers mixers;
  ExpertOperators experts;
  CacheAttention attention;
  std::vector<TokenOperator> embedding, head;
  std::vector<TokenCall> embedding_calls;
  double end_bytes = 0;     // weights of embedding, final norm and head on one GPU
  double hidden_bytes = 0;  // of one token's hidden state
  double logits = 0;        // of one row, on all GPUs together: the vocabulary as it is padded
};

// What attention's weights are and are computed in: as `attention` says, or as checkpoints have it.
[[nodiscard]] ServingPrecision attention_precision(const InstancePlan& plan);

[[nodiscard]] PassOperators pass_operators(const InstancePlan& plan, const KernelFusions& fusions);

}  // namespace rehearse::workloads
