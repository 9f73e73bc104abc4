#include <fmt/ranges.h>

#include "sim/export/megatron_parts.hpp"

namespace rehearse::sim {
namespace {

using workloads::Activation;
using workloads::Model;
using workloads::Norm;
using workloads::Positions;

void write_width(const Model& model, Arguments& out) {
  out.add("num-layers", model.layers);
  out.add("hidden-size", model.hidden);
  out.add("ffn-hidden-size", model.ffn);
  out.add("num-attention-heads", model.heads);
  if (model.kv_heads != model.heads) {
    out.flag("group-query-attention");
    out.add("num-query-groups", model.kv_heads);
  }
  if (model.head_dim * model.heads != model.hidden) out.add("kv-channels", model.head_dim);
}

void write_kernels(const Model& model, Arguments& out) {
  out.flag_if(model.activation == Activation::swiglu, "swiglu");
  out.flag_if(model.activation == Activation::geglu, "quick-geglu");
  out.flag_if(model.activation == Activation::relu2, "squared-relu");
  out.add("normalization", model.norm == Norm::rmsnorm ? "RMSNorm" : "LayerNorm");
  out.add("position-embedding-type", model.positions == Positions::rope      ? "rope"
                                     : model.positions == Positions::learned ? "learned_absolute"
                                                                             : "none");
  out.flag_if(!model.biases, "disable-bias-linear");
  out.flag_if(!model.biases && model.qkv_bias(), "add-qkv-bias");
  out.flag_if(model.qk_norm || model.mla, "qk-layernorm");
  out.add("hidden-dropout", model.dropout);
  out.add("attention-dropout", model.dropout);
  out.flag_if(!model.tied_embeddings, "untie-embeddings-and-output-weights");
}

// "([0]*3+[1]*58)", or zeros and ones one by one.
std::string layer_pattern(const Model& model) {
  const workloads::MoeSpec& moe = *model.moe;
  if (moe.first_dense == 0) return std::to_string(moe.every);
  if (moe.every == 1) return fmt::format("'([0]*{}+[1]*{})'", moe.first_dense, model.layers - moe.first_dense);
  std::vector<int> ones;
  for (int layer = 0; layer < model.layers; ++layer) ones.push_back(moe.has_experts(layer) ? 1 : 0);
  return fmt::format("'([{}])'", fmt::join(ones, ","));
}

void write_experts(const Model& model, Arguments& out) {
  if (!model.moe) return;
  out.add("num-experts", model.moe->experts);
  out.add("moe-router-topk", model.moe->top_k);
  out.add("moe-ffn-hidden-size", model.moe->ffn);
  if (model.moe->shared > 0) out.add("moe-shared-expert-intermediate-size", model.moe->shared * model.moe->ffn);
  if (model.narrows()) out.add("moe-latent-size", model.moe->latent);
  if (model.pattern.empty()) out.add("moe-layer-freq", layer_pattern(model));
}

void write_latent_attention(const Model& model, Arguments& out) {
  if (!model.mla) return;
  out.flag("multi-latent-attention");
  if (model.mla->q_lora > 0) out.add("q-lora-rank", model.mla->q_lora);
  out.add("kv-lora-rank", model.mla->kv_lora);
  out.add("qk-head-dim", model.mla->qk_nope);
  out.add("qk-pos-emb-head-dim", model.mla->qk_rope);
  out.add("v-head-dim", model.mla->v);
}

// Every so many layers the last one has attention; other places are said layer by layer, 1 for a mixer.
std::string mixer_places(const Model& model) {
  const workloads::MixerSpec& mixer = *model.mixer;
  if (mixer.attention_every == 0) return fmt::format("'([1]*{})'", model.layers);
  if (mixer.first_attention == mixer.attention_every - 1) return std::to_string(mixer.attention_every);
  std::string places;
  for (int layer = 0; layer < model.layers; ++layer) places += fmt::format("{}{}", layer == 0 ? "" : ",", model.has_mixer(layer) ? 1 : 0);
  return fmt::format("'[{}]'", places);
}

// Mamba layers beside attention and an MLP each have no arguments: such models are said by a pattern.
void write_mixer(const Model& model, Arguments& out) {
  if (!model.pattern.empty()) {
    out.flag("is-hybrid-model");
    std::string modules;
    for (int module = 0; module < model.mtp; ++module) modules += model.moe ? "/*E" : "/*-";
    out.add("hybrid-layer-pattern", fmt::format("'{}{}'", model.pattern, modules));
  }
  out.flag_if(model.attention_gate, "attention-output-gate");
  if (!model.mixer) return;
  const workloads::MixerSpec& mixer = *model.mixer;
  const bool delta = mixer.kind == "gated_delta";
  if (!delta && model.pattern.empty()) return;
  if (delta) {
    out.add("experimental-attention-variant", "gated_delta_net");
    if (model.pattern.empty()) out.add("linear-attention-freq", mixer_places(model));
    out.add("linear-conv-kernel-dim", mixer.conv);
  }
  out.add(delta ? "linear-num-value-heads" : "mamba-num-heads", mixer.heads);
  out.add(delta ? "linear-value-head-dim" : "mamba-head-dim", mixer.head_dim);
  out.add(delta ? "linear-num-key-heads" : "mamba-num-groups", mixer.groups);
  out.add(delta ? "linear-key-head-dim" : "mamba-state-dim", mixer.state);
}

}  // namespace

void write_megatron_model(const Job& job, Arguments& out) {
  const Model& model = job.workload.model;
  if (model.heads == 0 || model.vocab == 0) {
    job.resolved.document().at("model").fail("Megatron-LM has no model without attention or without a vocabulary");
  }
  write_width(model, out);
  out.add("seq-length", job.workload.batch.sequence);
  out.add("max-position-embeddings", job.workload.batch.sequence);
  out.add("vocab-size", model.vocab);
  write_kernels(model, out);
  write_experts(model, out);
  write_latent_attention(model, out);
  write_mixer(model, out);
  if (model.window) {
    out.add("window-size", fmt::format("{},0", model.window->tokens - 1));
    if (model.window->full_every > 0) out.add("window-attn-skip-freq", model.window->full_every);
  }
  if (model.clamps_gate) out.add("activation-func-clamp-value", "7.0");  // gpt-oss's; a job does not say where it clamps
  if (model.mtp > 0 && model.pattern.empty()) out.add("mtp-num-layers", model.mtp);
}

}  // namespace rehearse::sim
