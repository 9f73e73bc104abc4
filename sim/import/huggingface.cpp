// A HuggingFace config.json as a model file.
#include <algorithm>
#include <array>

#include "config/keys.hpp"
#include "sim/import/importer.hpp"
#include "workloads/huggingface.hpp"

namespace rehearse::sim {
namespace {

// Fields that change neither the shape nor the work of a training step.
constexpr std::array no_effect{"_",
                               "architectures",
                               "model_type",
                               "torch_dtype",
                               "dtype",
                               "transformers_version",
                               "initializer",
                               "init",
                               "rope",
                               "partial_rotary",
                               "rotary",
                               "rms_norm",
                               "layer_norm",
                               "layernorm",
                               "norm_e",
                               "norm_topk",
                               "bos_",
                               "eos_",
                               "pad_",
                               "use_cache",
                               "max_position",
                               "max_sequence",
                               "max_seq",
                               "n_positions",
                               "n_ctx",
                               "pretraining_tp",
                               "attention_dropout",
                               "attn_pdrop",
                               "embd_",
                               "emb_",
                               "summary_",
                               "router_",
                               "output_",
                               "aux_loss",
                               "seq_aux",
                               "auto_map",
                               "vision",
                               "image",
                               "video",
                               "projector",
                               "mm_",
                               "boi_",
                               "eoi_",
                               "cache_",
                               "scoring_func",
                               "topk_method",
                               "topk_group",
                               "n_group",
                               "routed_scaling",
                               "attn_logit",
                               "final_logit",
                               "query_pre",
                               "logit_scale",
                               "logits_",
                               "embedding_multiplier",
                               "residual_multiplier",
                               "attention_multiplier",
                               "id2label",
                               "label2id",
                               "task_specific",
                               "hidden_act",
                               "quantization",
                               "swiglu_limit",
                               "no_rope",
                               "floor_scale",
                               "attn_scale",
                               "attn_temperature",
                               "head_group",
                               "is_",
                               "ep_size",
                               "original_",
                               "word_embed",
                               "do_layer_norm",
                               "resid_",
                               "scale_",
                               "reorder",
                               "classifier",
                               "use_flash",
                               "tokenizer",
                               "learned_pos",
                               "verbose",
                               "apply_residual",
                               "parallel_attn",
                               "num_ln",
                               "use_parallel_residual",
                               "for_llm",
                               "experts_per_token",
                               "prefix",
                               "gradient_checkpointing",
                               "initial_context"};

class Huggingface final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "a model, from a HuggingFace config.json"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const workloads::HuggingfaceModel read = workloads::read_huggingface_config(config::Node::load_file(request.path), "");
    Draft draft(Draft::Kind::model);
    const config::Node document = workloads::model_keys().write(read.model);
    for (const std::string& key : document.keys()) draft.set(key, document.at(key));
    draft.inferred = read.inferred;
    for (const std::string& field : read.unread) {
      const bool quiet = std::ranges::any_of(no_effect, [&](std::string_view beginning) { return field.starts_with(beginning); });
      quiet ? draft.ignore(field) : draft.puzzle(field);
    }
    return draft;
  }
};

const ImporterRegistry::Registration<Huggingface> huggingface_registration("hf");

}  // namespace
}  // namespace rehearse::sim
