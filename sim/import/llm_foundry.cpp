// llm-foundry (MosaicML) YAML with an MPT model.
#include <fmt/format.h>

#include "sim/import/fields.hpp"
#include "sim/import/importer.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::int64_t most_in_foundry = 1'000'000;

std::int64_t copied(Fields& fields, const char* from, const char* to, Draft& draft) {
  const auto value = fields.take(std::string("model.") + from);
  if (!value) {
    draft.need(std::string("model.") + to, fmt::format("there is no model.{}", from));
    return 0;
  }
  draft.set(std::string("model.") + to, *value);
  return value->as_int(1, 100'000'000);
}

void read_attention(Fields& fields, std::int64_t heads, Draft& draft) {
  const std::string implementation = fields.word("model.attn_config.attn_impl", "flash"),
                    type = fields.word("model.attn_config.attn_type", "multihead_attention");
  draft.set("attention", implementation == "torch" ? "unfused" : "flash");
  const auto shared = fields.take("model.attn_config.kv_n_heads");
  if (shared) draft.set("model.kv_heads", *shared);
  if (!shared && type == "multiquery_attention") draft.set("model.kv_heads", 1);
  if (!shared && type == "multihead_attention" && heads > 0) draft.set("model.kv_heads", heads);
  const bool alibi = fields.truth("model.attn_config.alibi", false), rope = fields.truth("model.attn_config.rope", false);
  draft.set("model.positions", alibi ? "alibi" : rope ? "rope" : "learned");
  if (fields.truth("model.attn_config.qk_ln", false)) draft.set("model.qk_norm", "true");
  if (const auto window = fields.take("model.attn_config.sliding_window_size"); window && window->as_int(-1, most_in_foundry) > 0)
    draft.set("model.window.tokens", *window);
}

void read_mpt(Fields& fields, Draft& draft) {
  copied(fields, "n_layers", "layers", draft);
  const std::int64_t hidden = copied(fields, "d_model", "hidden", draft);
  const std::int64_t heads = copied(fields, "n_heads", "heads", draft);
  const std::int64_t ratio = fields.whole("model.expansion_ratio", 4, 1, 100);
  const auto own = fields.take("model.ffn_config.ffn_hidden_size");
  if (own) draft.set("model.ffn", *own);
  if (!own && hidden > 0) draft.set("model.ffn", hidden * ratio);
  const std::string ffn = fields.word("model.ffn_config.ffn_type", "mptmlp");
  if (ffn != "mptmlp" && ffn != "mptglu")
    fields.take("model.ffn_config.ffn_type")->fail(fmt::format("ffn_type '{}' is not imported", ffn), "mptmlp or mptglu");
  draft.set("model.activation", ffn == "mptglu" ? "geglu" : "gelu");
  copied(fields, "vocab_size", "vocab", draft);
  draft.set("model.tied_embeddings", fields.truth("model.tie_word_embeddings", true) ? "true" : "false");
  draft.set("model.biases", fields.truth("model.no_bias", false) ? "false" : "true");
  const std::string norm = fields.word("model.norm_type", "low_precision_layernorm");
  draft.set("model.norm", norm.find("rms") != std::string::npos ? "rmsnorm" : "layernorm");
  const auto dropout = fields.take("model.resid_pdrop");
  dropout ? draft.set("model.dropout", *dropout) : draft.set("model.dropout", "0");
  read_attention(fields, heads, draft);
}

void read_foundry_model(Fields& fields, Draft& draft) {
  const std::string kind = fields.word("model.name", "mpt_causal_lm");
  if (kind == "mpt_causal_lm") return read_mpt(fields, draft);
  const auto pretrained = fields.take("model.pretrained_model_name_or_path");
  draft.need("model", fmt::format("it is that of {}: {{hf: path/to/its/config.json}}", pretrained ? pretrained->as_string() : kind));
}

void read_sharding(Fields& fields, Draft& draft) {
  const auto strategy = fields.take("fsdp_config.sharding_strategy");
  if (!fields.take("fsdp_config")) return draft.set("optimizer.sharding", "none");
  const std::string name =
      strategy ? strategy->as_choice({"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", "NO_SHARD"}) : "FULL_SHARD";
  if (name.find("HYBRID") != std::string::npos) draft.need("optimizer.shard_group", "a hybrid shards over the GPUs of a node");
  draft.set("overlap.dp_gradients", "true");
  draft.set("overlap.dp_parameters", "true");
  draft.infer(fmt::format("overlap.dp_gradients, dp_parameters: true, as FSDP does"));
  draft.set("optimizer.sharding", name == "NO_SHARD" ? "none" : name == "FULL_SHARD" || name == "HYBRID_SHARD" ? "zero3" : "zero2");
  if (fields.truth("fsdp_config.activation_checkpointing", false)) draft.set("recompute", "full");
  if (const auto offload = fields.take("fsdp_config.activation_cpu_offload"); offload && offload->as_bool())
    draft.set("offload.activations", "true");
}

void read_foundry_precision(Fields& fields, Draft& draft) {
  const auto given = fields.take("precision");  // the first four of composer/core/precision.py
  const std::string precision = given ? given->as_choice({"amp_bf16", "amp_fp16", "amp_fp8", "fp32", "bf16", "fp16"}) : "amp_bf16";
  const std::string mixed = fields.word("fsdp_config.mixed_precision", "DEFAULT");
  const std::string compute = precision.find("fp8") != std::string::npos    ? "fp8"
                              : precision.find("bf16") != std::string::npos ? "bf16"
                              : precision.find("fp16") != std::string::npos ? "fp16"
                                                                            : "fp32";
  if (mixed != "PURE" || compute == "fp32") return draft.set("precision", compute);
  draft.set("precision.compute", compute);
  draft.set("precision.weights", compute == "fp16" ? "fp16" : "bf16");
  draft.set("precision.gradients", compute == "fp16" ? "fp16" : "bf16");
}

void read_foundry_batch(Fields& fields, Draft& draft) {
  const auto global = fields.take("global_train_batch_size"), micro = fields.take("device_train_microbatch_size");
  const auto sequence = fields.take_any({"max_seq_len", "variables.max_seq_len", "model.max_seq_len"});
  global ? draft.set("batch.global", *global) : draft.need("batch.global", "there is no global_train_batch_size");
  const bool automatic = micro && micro->is_scalar() && micro->as_string() == "auto";
  micro && !automatic ? draft.set("batch.micro", *micro)
                      : draft.need("batch.micro", "device_train_microbatch_size is found out when it runs");
  sequence ? draft.set("batch.sequence", *sequence) : draft.need("batch.sequence", "there is no max_seq_len");
}

// The stack is that of 2023, with the Triton kernel; attn_impl: flash has flash-attn's.
void read_stack(Fields& fields, Draft& draft) {
  draft.set("software", "llm-foundry");
  const std::string attention = fields.word("model.attn_config.attn_impl", "flash");
  if (attention != "flash") return;
  draft.override_with("software.flash", "2");
  draft.infer("software: llm-foundry with flash-attn 2 (attn_impl: flash)");
}

class LlmFoundry final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "llm-foundry: YAML with an MPT model and fsdp_config"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    Fields fields(Node::load_file(request.path), Fields::Interpolates::yes);
    static_cast<void>(fields.root().at("model").keys());
    Draft draft(Draft::Kind::job);
    read_foundry_model(fields, draft);
    read_stack(fields, draft);
    read_foundry_batch(fields, draft);
    read_foundry_precision(fields, draft);
    read_sharding(fields, draft);
    if (const auto kind = fields.take("optimizer.name"); kind && kind->as_string().find("adam") == std::string::npos) {
      kind->fail(fmt::format("optimizer '{}' is not simulated", kind->as_string()), "decoupled_adamw");
    }
    draft.need("cluster", "the file does not say on which machines (rehearse list clusters)");
    draft.need("gpus", "the file does not say on how many");
    fields.report(draft, {"data_",
                          "global_seed",
                          "seed",
                          "run_name",
                          "tokenizer",
                          "train_loader",
                          "eval",
                          "scheduler",
                          "optimizer",
                          "algorithms",
                          "max_duration",
                          "device_eval",
                          "progress_bar",
                          "log",
                          "console_log",
                          "callbacks",
                          "save_",
                          "load_",
                          "variables",
                          "dist_timeout",
                          "autoresume",
                          "python_log",
                          "model.name",
                          "model.init_",
                          "model.pretrained",
                          "model.max_seq_len",
                          "model.attn_config.softmax_scale",
                          "model.attn_config.attn_uses",
                          "model.emb_pdrop",
                          "model.attn_config.attn_pdrop",
                          "fsdp_config.verbose",
                          "fsdp_config.activation_checkpointing_reentrant",
                          "fsdp_config.limit_all_gathers",
                          "fsdp_config.state_dict",
                          "fsdp_config.mesh"});
    return draft;
  }
};

const ImporterRegistry::Registration<LlmFoundry> llm_foundry_registration("llm-foundry");

}  // namespace
}  // namespace rehearse::sim
