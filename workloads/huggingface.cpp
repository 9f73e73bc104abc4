#include "workloads/huggingface.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/reference.hpp"
#include "workloads/huggingface_fields.hpp"
#include "workloads/layer_pattern.hpp"
#include "workloads/model_limits.hpp"

namespace rehearse::workloads {
namespace {

using config::Node;
using Family = HuggingfaceFamily;
using Fields = HuggingfaceFields;

constexpr CountBounds layers{1, most_layers};
constexpr CountBounds some_layers{0, most_layers};

const Family& family_of(const Node& named, std::string_view Family::*by) {
  const std::string name = named.as_string();
  std::vector<std::string> known;
  for (const Family& family : huggingface_families()) {
    if (family.*by == name) {
      if (!family.refused.empty()) named.fail(fmt::format("{} is not simulated: {}", name, family.refused));
      return family;
    }
    if (family.refused.empty()) known.emplace_back(family.*by);
  }
  named.fail((by == &Family::architecture ? "unknown architecture " : "unknown model_type ") + config::shown(name),
             config::suggestion(name, known));
}

// By `architectures`, or by `model_type` where that is missing, as in the text part of a multimodal model.
const Family& find_family(const Node& json) {
  const auto field = json.find("architectures");
  if ((!field || field->is_null()) && json.find("model_type")) return family_of(json.at("model_type"), &Family::type);
  const std::vector<Node> named = json.at("architectures").items();
  if (named.size() != 1) field->fail("architectures must name one architecture");
  return family_of(named.front(), &Family::architecture);
}

Activation read_activation(Fields& fields, const Family& family) {
  const auto field = fields.given({"hidden_act", "mlp_hidden_act", "hidden_activation", "activation_function", "activation"});
  if (!field) return family.gated ? (family.tied ? Activation::geglu : Activation::swiglu) : Activation::gelu;
  const std::string name = field->as_choice({"silu", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu2", "relu"});
  if (family.gated && name == "silu") return Activation::swiglu;
  if (name.starts_with("gelu")) return family.gated ? Activation::geglu : Activation::gelu;
  if (!family.gated && name == "relu2") return Activation::relu2;
  if (!family.gated && name == "relu") return Activation::gelu;  // one pass over the same tensor
  field->fail(fmt::format("{} '{}' is not known for this architecture", field->path(), name));
}

// Families of hybrids have dense models too: those whose pattern has no experts, or with 0 of them.
bool has_experts(Fields& fields, const Family& family, const Node& experts) {
  if (family.mixer.empty()) return true;
  if (const auto pattern = fields.given("hybrid_override_pattern")) return pattern->as_string().find('E') != std::string::npos;
  return experts.as_int(0, widest) > 0;
}

// Experts under all the names that families give their fields.
void read_experts(Fields& fields, const Family& family, HuggingfaceModel& out) {
  Model& model = out.model;
  const auto experts = fields.given({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"});
  if (!experts || !has_experts(fields, family, *experts)) return;
  MoeSpec& moe = model.moe.emplace();
  moe.experts = static_cast<int>(experts->as_int(2, widest));
  moe.top_k = fields.whole({"num_experts_per_tok", "moe_k", "num_experts_per_token"}, {1, moe.experts});
  moe.ffn = fields.whole({"moe_intermediate_size", "intermediate_size"});
  moe.shared = fields.whole_or({"n_shared_experts", "moe_num_shared_experts", "num_shared_experts"}, 0, {0, widest});
  moe.latent = fields.whole_or({"moe_latent_size"}, 0, {1, widest});
  if (const auto width =
          fields.given({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"})) {
    const std::int64_t all = width->as_int(0, widest);
    if (all % moe.ffn != 0) width->fail(fmt::format("shared experts of {} are not a multiple of an expert's {}", all, moe.ffn));
    moe.shared = static_cast<int>(all / moe.ffn);
    if (moe.shared > 0) out.inferred.push_back(fmt::format("moe.shared: {}, {} wide", moe.shared, all));
  }
  const auto groups = fields.given("n_group"), chosen = fields.given("topk_group");
  if (groups && chosen && groups->as_int(1, widest) > chosen->as_int(1, widest)) {
    out.inferred.push_back(
        fmt::format("tokens go to {} of {} groups of experts: moe.nodes_per_token of a job", chosen->as_string(), groups->as_string()));
  }
}

// Which layers have experts: every n-th, from one on, or in a list.
void read_expert_layers(Fields& fields, Model& model) {
  if (!model.moe) return;
  MoeSpec& moe = *model.moe;
  moe.first_dense = fields.whole_or({"first_k_dense_replace", "moe_layer_start_index"}, 0, some_layers);
  // Layers step - 1, 2 step - 1, ...
  if (const auto step = fields.given({"decoder_sparse_step", "interleave_moe_layer_step"})) {
    moe.every = static_cast<int>(step->as_int(1, most_layers));
    moe.first_dense = moe.every - 1;
  }
  if (const auto frequency = fields.given({"moe_layer_freq", "moe_layer_interval"})) {
    if (frequency->is_sequence()) {
      const auto spaced = evenly_spaced(read_layer_pattern(*frequency).ones);
      if (!spaced) frequency->fail("layers with experts must come at equal distances from a first one on");
      moe.first_dense = spaced->first;
      moe.every = spaced->every;
    } else {
      moe.every = static_cast<int>(frequency->as_int(1, most_layers));
    }
  }
  if (const auto dense = fields.given("mlp_only_layers"); dense && !dense->items().empty()) {
    int next = 0;
    for (const Node& layer : dense->items()) {
      if (moe.every != 1 || layer.as_int(0, most_layers) != next++) {
        dense->fail("mlp_only_layers must be the first layers or empty; single dense layers cannot be expressed");
      }
    }
    moe.first_dense = next;
  }
  if (const auto last = fields.given("moe_layer_end_index");
      last && last->as_int(-1, most_layers) >= 0 && last->as_int(-1, most_layers) < model.layers - 1) {
    last->fail("experts must reach to the last layer");
  }
  static_cast<void>(fields.given("moe_layers"));  // what interleave_moe_layer_step says
}

void read_latent(Fields& fields, Model& model) {
  model.mla = MlaSpec{.q_lora = fields.whole_or({"q_lora_rank"}, 0, {0, widest}),
                      .kv_lora = fields.whole({"kv_lora_rank"}),
                      .qk_nope = fields.whole({"qk_nope_head_dim"}),
                      .qk_rope = fields.whole({"qk_rope_head_dim"}, {0, widest}),
                      .v = fields.whole({"v_head_dim"})};
}

void check_heads(const Node& heads, const Model& model, Fields& fields, bool has_head_dim) {
  if (!has_head_dim && model.hidden % model.heads != 0) {
    heads.fail(fmt::format("the hidden size ({}) is not a multiple of {} ({})", model.hidden, heads.path(), model.heads));
  }
  if (model.heads % model.kv_heads == 0) return;
  const Node few = fields.required({"num_key_value_heads", "num_kv_heads", "n_head_kv"});
  few.fail(fmt::format("{} ({}) is not a multiple of {} ({})", heads.path(), model.heads, few.path(), model.kv_heads));
}

// Falcon's and MPT's fewer heads of keys and values.
int kv_heads_of(Fields& fields, const Family& family, int heads) {
  const bool falcon = family.type == "falcon";
  const bool newer = !falcon || fields.truth_or({"new_decoder_architecture"}, false);
  if (falcon && !newer) {
    static_cast<void>(fields.given({"num_kv_heads", "n_head_kv"}));
    return fields.truth_or({"multi_query"}, true) ? 1 : heads;
  }
  if (const auto nested = fields.given("attn_config"); nested && nested->is_map()) {
    if (const auto few = nested->find("kv_n_heads")) return static_cast<int>(few->as_int(1, heads));
  }
  return fields.whole_or({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, heads, {1, heads});
}

int ffn_of(Fields& fields, const Model& model) {
  // Llama 4's dense layers have a width of their own beside the experts'.
  if (const auto given = fields.given({"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"})) {
    return static_cast<int>(given->as_int(1, widest));
  }
  const auto ratio = fields.given("expansion_ratio");
  const std::int64_t width = (ratio ? ratio->as_int(1, 100) : 4) * model.hidden;
  const Node hidden = fields.required({"hidden_size", "n_embd", "n_embed", "d_model"});
  if (width > widest)
    hidden.fail(fmt::format("{} ({}) is too large: 4 {} would be wider than {}", hidden.path(), model.hidden, hidden.path(), widest));
  return static_cast<int>(width);
}

void read_shape(Fields& fields, const Family& family, Model& model) {
  model.layers = fields.whole({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, layers);
  model.hidden = fields.whole({"hidden_size", "n_embd", "n_embed", "d_model"});
  const Node heads = fields.required({"num_attention_heads", "n_head", "n_heads"});
  model.heads = static_cast<int>(heads.as_int(1, widest));
  model.kv_heads = kv_heads_of(fields, family, model.heads);
  const int head_dim = fields.whole_or({"head_dim", "attention_head_dim"}, family.head_dim);
  check_heads(heads, model, fields, head_dim > 0);
  model.head_dim = head_dim > 0 ? head_dim : model.hidden / model.heads;
  const bool required = family.type == "llama" || family.type == "mixtral";
  model.ffn = required ? fields.whole({"intermediate_size"}) : ffn_of(fields, model);
  model.activation = read_activation(fields, family);
}

void read_positions(Fields& fields, const Family& family, Model& model) {
  model.positions = family.positions;
  if (const auto attention = fields.given("attn_config"); attention && attention->is_map()) {
    const auto on = [&](const char* key) {
      const auto found = attention->find(key);
      return found && found->as_bool();
    };
    if (on("alibi")) model.positions = Positions::alibi;
    if (on("rope")) model.positions = Positions::rope;
  }
  if (fields.truth_or({"alibi"}, false)) model.positions = Positions::alibi;
  if (const auto kind = fields.given("position_embedding_type"); kind && kind->as_string() == "nope") model.positions = Positions::none;
}

void read_biases(Fields& fields, const Family& family, Model& model) {
  model.biases = fields.truth_or({"use_bias", "mlp_bias", "bias", "enable_bias"}, family.biases);
  if (const auto none = fields.given("no_bias")) model.biases = !none->as_bool();
  AttentionBiases attention = family.attention_biases;
  if (fields.truth_or({"attention_bias"}, false)) attention = family.attention_bias;
  if (fields.truth_or({"use_qkv_bias", "qkv_bias"}, false)) attention = AttentionBiases::qkv;
  if (fields.truth_or({"attention_out_bias"}, false)) attention = AttentionBiases::all;
  if (family.type == "gptj") model.attention_biases = AttentionBiases::none;  // whose MLP alone has biases
  const bool all = model.biases && family.type != "nemotron";
  if (!all && attention != AttentionBiases::none) model.attention_biases = attention;
}

// Attention beside the MLP: in Falcon's layers unless parallel_attn is off, those of its later models behind a norm each
// (modeling_falcon.py); in StableLM's where the file says so, in others' unless it says no.
ParallelResidual read_parallel_residual(Fields& fields, const Family& family) {
  if (family.parallel_residual == ParallelResidual::none) return ParallelResidual::none;
  if (family.type == "falcon") {
    const bool newer = fields.truth_or({"new_decoder_architecture"}, false);
    const int norms = fields.whole_or({"num_ln_in_parallel_attn"}, newer ? 2 : 1, {1, 2});
    if (!fields.truth_or({"parallel_attn"}, true) && !newer) return ParallelResidual::none;
    return newer && norms == 2 ? ParallelResidual::two_norms : ParallelResidual::one_norm;
  }
  const bool on = fields.truth_or({"use_parallel_residual"}, family.type != "stablelm");
  return on ? family.parallel_residual : ParallelResidual::none;
}

// Windows by layer_types, or as the family has them.
void read_windows(Fields& fields, const Family& family, HuggingfaceModel& out) {
  Model& model = out.model;
  const auto size = fields.given("sliding_window");
  const auto types = fields.given("layer_types");
  const bool on = fields.truth_or({"use_sliding_window"}, family.windows);
  const int full = fields.whole_or({"sliding_window_pattern", "_sliding_window_pattern"}, family.full_every, some_layers);
  const int from = fields.whole_or({"max_window_layers"}, 0, some_layers);
  std::vector<bool> windowed;
  for (const Node& type : types ? types->items() : std::vector<Node>{}) {
    const std::string name =
        type.as_choice({"full_attention", "sliding_attention", "chunked_attention", "linear_attention", "attention", "mamba"});
    if (!model.mixer && (name == "linear_attention" || name == "mamba")) type.fail("layers that are not attention are not simulated");
    windowed.push_back(name == "sliding_attention");
  }
  if (fields.given("attention_chunk_size"))
    out.inferred.push_back("attention in chunks counts as attention to the whole sequence: right up to the size of a chunk");
  if (!size || !on || (types && std::ranges::find(windowed, true) == windowed.end())) return;
  WindowSpec window{static_cast<int>(size->as_int(1, most_words)), full};
  if (types) {
    const auto every = full_every(windowed);
    if (!every) types->fail("windows must leave out the last of every so many layers; other patterns cannot be expressed");
    window.full_every = *every;
  } else if (from > 0 && !family.windows) {
    if (from >= model.layers) return;
    size->fail(fmt::format("windows from layer {} on cannot be expressed", from));
  }
  if (window.full_every == 1) return;  // of all layers, that is none
  model.window = window;
}

// What the file says it is ("meta-llama/Llama-3.1-8B" is Llama-3.1-8B), else the file: config.json says nothing without its folder.
std::string name_in(const Node& json, const std::filesystem::path& file) {
  if (const auto said = json.find("_name_or_path"); said && said->is_scalar()) {
    const std::string last = std::filesystem::path(said->as_string()).filename().string();
    if (!last.empty() && last != "." && last != "..") return last;
  }
  if (file.stem() != "config") return file.stem().string();
  return (file.parent_path().filename() / file.filename()).string();
}

// The text model of a multimodal one.
Node text_of(const Node& json) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    const auto nested = json.find(key);
    if (nested && nested->is_map() && (nested->find("num_hidden_layers") || nested->find("hidden_size"))) return *nested;
  }
  return json;
}

}  // namespace

HuggingfaceModel read_huggingface_config(const Node& json, const std::string& name) {
  const Family& family = find_family(json);
  const Node text = text_of(json);
  HuggingfaceModel out;
  if (text.path() != json.path()) out.inferred.push_back(fmt::format("the text model alone, in {}", text.path()));
  Fields fields(text);
  Model& model = out.model;
  model.name = name;
  read_shape(fields, family, model);
  if (family.experts) read_experts(fields, family, out);
  if (!family.mixer.empty()) read_huggingface_mixer(fields, family, model);
  if (const auto state = fields.given({"mamba_ssm_cache_dtype", "mamba_ssm_dtype"}); state && state->as_string() == "float32")
    out.inferred.emplace_back("states of mixers are kept in 32 bits: precision.state of a pool that serves them");
  if (const auto all = fields.given("shared_intermediate_size"); all && !model.moe) model.ffn = static_cast<int>(all->as_int(1, widest));
  if (family.type.starts_with("llama4") && model.moe) model.moe->shared = 1;  // in its code, not in its configuration
  read_expert_layers(fields, model);
  if (family.latent) read_latent(fields, model);
  model.vocab = fields.whole({"vocab_size"}, {1, most_words});
  Fields whole(json);
  const auto tied = fields.given("tie_word_embeddings"), outside = whole.given("tie_word_embeddings");
  model.tied_embeddings = tied ? tied->as_bool() : outside ? outside->as_bool() : family.tied;
  read_positions(fields, family, model);
  read_biases(fields, family, model);
  model.attention_gate = fields.truth_or({"attn_output_gate"}, family.attention_gate);
  model.qk_norm = !model.mla && fields.truth_or({"use_qk_norm", "qk_layernorm"}, family.qk_norm);
  model.post_norms = family.post_norms;
  model.parallel_residual = read_parallel_residual(fields, family);
  model.clamps_gate = family.clamps_gate;
  model.norm = family.norm;
  const auto dropout = fields.given({"resid_pdrop", "hidden_dropout", "dropout"});
  model.dropout = dropout ? dropout->as_number(0, 1) : family.dropout;
  model.mtp = fields.whole_or({"num_nextn_predict_layers", "num_mtp_modules"}, 0, some_layers);
  read_windows(fields, family, out);
  out.unread = fields.unread();
  return out;
}

Model read_huggingface(const Node& path, const std::string& name) {
  const Node json = config::load_referenced(path);
  return read_huggingface_config(json, name.empty() ? name_in(json, config::referenced_path(path)) : name).model;
}

}  // namespace rehearse::workloads
