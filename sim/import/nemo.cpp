// NeMo 1 YAML (and what NeMo-Framework-Launcher keeps): `trainer` and `model`, OmegaConf's ${...} resolved.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/importer.hpp"
#include "sim/import/interpolation.hpp"
#include "sim/import/megatron_arguments.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// What NeMo calls otherwise than Megatron-LM.
constexpr std::array renamed{
    std::pair{"encoder_seq_length", "seq-length"},
    std::pair{"activations_checkpoint_granularity", "recompute-granularity"},
    std::pair{"activations_checkpoint_method", "recompute-method"},
    std::pair{"activations_checkpoint_num_layers", "recompute-num-layers"},
    std::pair{"ub_tp_comm_overlap", "tp-comm-overlap"},
    std::pair{"use_flash_attention", "use-flash-attn"},
    std::pair{"bias", "add-bias-linear"},
    std::pair{"moe_grouped_gemm", "moe-grouped-gemm"},
};
// Switches that NeMo says the other way round.
constexpr std::array turned{
    std::pair{"masked_softmax_fusion", "no-masked-softmax-fusion"},
    std::pair{"bias_activation_fusion", "no-bias-swiglu-fusion"},
    std::pair{"bias_dropout_add_fusion", "no-bias-dropout-fusion"},
    std::pair{"gradient_accumulation_fusion", "no-gradient-accumulation-fusion"},
    std::pair{"apply_rope_fusion", "no-rope-fusion"},
};
constexpr std::array no_effect_in_nemo{"mcore_gpt",
                                       "use_scaled_init_method",
                                       "ffn_dropout",
                                       "do_layer_norm_weight_decay",
                                       "pre_process",
                                       "post_process",
                                       "headscale",
                                       "normalize_attention_scores",
                                       "rotary_percentage",
                                       "attention_type",
                                       "tokenizer",
                                       "native_amp_init_scale",
                                       "native_amp_growth_interval",
                                       "fp16_lm_cross_entropy",
                                       "grad_allreduce_chunk_size_mb",
                                       "grad_div_ar_fusion",
                                       "seed",
                                       "resume_from_checkpoint",
                                       "onnx_safe",
                                       "apex_transformer_log_level",
                                       "gradient_as_bucket_view",
                                       "transformer_block_type",
                                       "data",
                                       "gc_interval",
                                       "precision",
                                       "nsys_profile",
                                       "layernorm_epsilon",
                                       "persist_layer_norm",
                                       "megatron_amp_O2",
                                       "apply_query_key_layer_scaling",
                                       "optim",
                                       "name",
                                       "restore_from_path",
                                       "sync_batch_comm",
                                       "transformer_engine",
                                       "fp8_wgrad",
                                       "use_emha",
                                       "batch_p2p_comm"};

std::string dashed(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

bool is_true(const Node& value) { return value.is_scalar() && (value.as_string() == "true" || value.as_string() == "True"); }
bool is_false(const Node& value) { return value.is_scalar() && (value.as_string() == "false" || value.as_string() == "False"); }

// swiglu, fast-swiglu, geglu, squared-relu, gelu.
void add_activation(const Node& value, MegatronArguments& arguments) {
  const std::string name = value.as_string();
  const Node on = Node::scalar("true");
  if (name.find("swiglu") != std::string::npos) return arguments.add("swiglu", on);
  if (name.find("geglu") != std::string::npos) return arguments.add("quick-geglu", on);
  if (name == "squared-relu") return arguments.add("squared-relu", on);
  if (name != "gelu") value.fail(fmt::format("activation '{}' is not simulated", name), "swiglu, geglu, squared-relu or gelu");
}

void add_field(const std::string& key, const Node& value, MegatronArguments& arguments, Draft& draft) {
  const auto rename = std::ranges::find_if(renamed, [&](const auto& pair) { return key == pair.first; });
  if (rename != renamed.end()) return arguments.add(rename->second, value);
  const auto turn = std::ranges::find_if(turned, [&](const auto& pair) { return key == pair.first; });
  if (turn != turned.end()) {
    if (is_false(value)) arguments.add(turn->second, Node::scalar("true"));
    return;
  }
  if (key == "activation") return add_activation(value, arguments);
  if (key == "fp8") {
    if (is_true(value)) arguments.add("fp8-format", Node::scalar("hybrid"));
    return;
  }
  if (key == "fp8_e4m3" || key == "fp8_hybrid") return;
  if (std::ranges::find(no_effect_in_nemo, key) != no_effect_in_nemo.end()) return draft.ignore("model." + key);
  if (value.is_map()) return draft.puzzle("model." + key);
  arguments.add(dashed(key), value);
}

// distributed_fused_adam is Megatron's distributed optimizer.
void add_optimizer(const Node& model, const Interpolation& values, MegatronArguments& arguments) {
  const auto name = values.at("optim.name", model);
  if (!name) return;
  const std::string kind = name->as_string();
  if (kind.find("adam") == std::string::npos)
    name->fail(fmt::format("optimizer '{}' is not simulated", kind), "fused_adam or distributed_fused_adam");
  const auto add_switch = [&](const char* path, const char* argument) {
    const auto value = values.at(path, model);
    if (value && is_true(*value)) arguments.add(argument, Node::scalar("true"));
  };
  if (kind.find("distributed") != std::string::npos || kind.find("mcore") != std::string::npos) {
    arguments.add("use-distributed-optimizer", Node::scalar("true"));
  }
  add_switch("optim.overlap_grad_sync", "overlap-grad-reduce");
  add_switch("optim.overlap_param_sync", "overlap-param-gather");
  const auto type = values.at("optim.grad_sync_dtype", model);
  if (type && type->as_string() == "bf16") arguments.add("grad-reduce-in-bf16", Node::scalar("true"));
}

void add_precision(const Node& precision, MegatronArguments& arguments) {
  const std::string name = precision.as_string();
  if (name.starts_with("bf16")) return arguments.add("bf16", Node::scalar("true"));
  if (name.starts_with("16")) return arguments.add("fp16", Node::scalar("true"));
  if (!name.starts_with("32")) precision.fail(fmt::format("precision '{}' is not known", name), "bf16, 16 or 32");
}

std::int64_t world_of(const Node& root, const Interpolation& values, Draft& draft) {
  const auto nodes = values.at("trainer.num_nodes", root), devices = values.at("trainer.devices", root);
  if (!nodes || !devices) return 0;
  const std::int64_t gpus = nodes->as_int(1, 1'000'000) * devices->as_int(1, 1'000);
  draft.infer(fmt::format("gpus: {}, {} nodes x {}", gpus, nodes->as_string(), devices->as_string()));
  return gpus;
}

// In Megatron core by Transformer Engine the engine chooses, and use_flash_attention has no say (NeMo issue 8232).
void infer_attention(const Node& model, const Interpolation& values, MegatronArguments& arguments, Draft& draft) {
  const auto on = [&](const char* name) {
    const auto value = values.at(name, model);
    return value && value->is_scalar() && (value->as_string() == "true" || value->as_string() == "True");
  };
  if (arguments.has("use-flash-attn")) return;
  const bool engine = on("mcore_gpt") && on("transformer_engine");
  arguments.add("attention-backend", Node::scalar(engine ? "flash" : "unfused"));
  draft.infer(engine ? "attention: flash, which Transformer Engine chooses in Megatron core (mcore_gpt, transformer_engine)"
                     : "attention: unfused, since use_flash_attention is not switched on");
}

class Nemo final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "NeMo: the YAML of a training, with trainer and model"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    const Node file = Node::load_file(request.path);
    const Node root = file.is_map() && file.find("training") ? file.at("training") : file;
    const Interpolation values(file);
    const Node model = root.at("model");
    Draft draft(Draft::Kind::job);
    MegatronArguments arguments;
    for (const std::string& key : model.keys()) {
      if (const auto value = values.resolved(model.at(key))) add_field(key, *value, arguments, draft);
    }
    if (arguments.has("num-query-groups")) arguments.add("group-query-attention", Node::scalar("true"));
    if (const auto type = values.at("tokenizer.type", model)) arguments.add("tokenizer-type", *type);
    if (const auto merges = model.find_path("tokenizer.merge_file"); merges && !merges->is_null()) arguments.add("merge-file", *merges);
    infer_attention(model, values, arguments, draft);
    add_optimizer(model, values, arguments);
    if (const auto precision = values.at("trainer.precision", root)) add_precision(*precision, arguments);
    for (const std::string& key : root.keys()) {
      if (key != "trainer" && key != "model") draft.ignore(key);
    }
    read_megatron_arguments(arguments, world_of(root, values, draft), draft);
    return draft;
  }
};

const ImporterRegistry::Registration<Nemo> nemo_registration("nemo");

}  // namespace
}  // namespace rehearse::sim
