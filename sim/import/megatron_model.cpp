// The model in Megatron-LM's arguments, with the defaults of its parser.
#include <fmt/format.h>

#include <algorithm>

#include "sim/import/megatron_arguments.hpp"
#include "workloads/layer_pattern.hpp"
#include "workloads/model.hpp"

namespace rehearse::sim {
namespace {

using workloads::evenly_spaced;
using workloads::full_every;
using workloads::LayerPattern;
using workloads::read_layer_pattern;

// Of a gated feed-forward block Megatron makes 4 h x 2/3, rounded down to a multiple of 64.
std::int64_t default_ffn(std::int64_t hidden, bool gated) { return gated ? hidden * 8 / 3 / 64 * 64 : 4 * hidden; }

// A number the file has to say.
std::int64_t required(MegatronArguments& arguments, const char* name, const char* key, Draft& draft) {
  const auto value = arguments.take(name);
  if (!value) {
    draft.need(std::string("model.") + key, fmt::format("there is no --{}", name));
    return 0;
  }
  draft.set(std::string("model.") + key, *value);
  return value->as_int(1, 1'000'000);
}

std::string activation_of(MegatronArguments& arguments) {
  const bool swiglu = arguments.flag("swiglu"), relu2 = arguments.flag("squared-relu"), geglu = arguments.flag("quick-geglu");
  if (swiglu) return "swiglu";
  if (relu2) return "relu2";
  if (geglu) return "geglu";
  // Programs on top of Megatron name function and gate.
  const bool gated = arguments.flag("gated-linear-unit");
  const auto given = arguments.take("activation-func");
  const std::string name = given ? given->as_string() : "gelu";
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("swiglu") || (has("silu") && gated)) return "swiglu";
  if (has("silu")) given->fail("silu without a gate is not simulated", "gated-linear-unit beside it, or gelu, which takes as long");
  if (has("relu") && gated) given->fail("relu with a gate is not simulated", "gelu, which takes as long");
  if (has("relu")) return has("squared") || has("relu2") ? "relu2" : "gelu";  // one pass over the same tensor
  if (!has("gelu") && !has("geglu"))
    given->fail(fmt::format("activation-func {} is not simulated", config::shown(name)), "a name with gelu, silu or relu in it");
  return gated ? "geglu" : "gelu";
}

void read_width(MegatronArguments& arguments, Draft& draft) {
  required(arguments, "num-layers", "layers", draft);
  const std::int64_t hidden = required(arguments, "hidden-size", "hidden", draft);
  required(arguments, "num-attention-heads", "heads", draft);
  const bool grouped = arguments.flag("group-query-attention");
  const auto groups = arguments.take("num-query-groups");
  if (grouped) {
    groups ? draft.set("model.kv_heads", *groups) : draft.set("model.kv_heads", 1);
  } else if (groups) {
    draft.ignore("num-query-groups (group-query-attention is not switched on)");
  }
  if (const auto width = arguments.take("kv-channels")) draft.set("model.head_dim", *width);
  const std::string activation = activation_of(arguments);
  const bool gated = activation == "swiglu" || activation == "geglu";
  if (const auto ffn = arguments.take("ffn-hidden-size")) {
    draft.set("model.ffn", *ffn);
  } else if (hidden > 0) {
    draft.set("model.ffn", default_ffn(hidden, gated));
    draft.infer(fmt::format("model.ffn: {}, Megatron's default for a hidden size of {}", default_ffn(hidden, gated), hidden));
  }
  draft.set("model.activation", activation);
}

void read_vocabulary(MegatronArguments& arguments, Draft& draft) {
  const auto padded = arguments.take("padded-vocab-size"), plain = arguments.take("vocab-size");
  const std::string tokenizer = arguments.word("tokenizer-type", "");
  if (plain || padded) return draft.set("model.vocab", plain ? *plain : *padded);
  // The two whose vocabulary is part of the format.
  if (tokenizer == "GPT2BPETokenizer" || arguments.has("merge-file")) {
    draft.set("model.vocab", 50257);
    return draft.infer("model.vocab: 50257, GPT-2's tokenizer");
  }
  if (tokenizer == "Llama2Tokenizer") {
    draft.set("model.vocab", 32000);
    return draft.infer("model.vocab: 32000, Llama 2's tokenizer");
  }
  draft.need("model.vocab", "the tokenizer decides it, and the file does not say --vocab-size");
}

void read_positions(MegatronArguments& arguments, Draft& draft) {
  const bool rotary = arguments.flag("use-rotary-position-embeddings");
  const auto type = arguments.take("position-embedding-type");
  const std::string name = rotary ? "rope" : type ? type->as_string() : "learned_absolute";
  if (name == "learned_absolute") return draft.set("model.positions", "learned");
  if (name == "rope" || name == "yarn" || name == "mrope") return draft.set("model.positions", "rope");
  if (name != "none" && name != "alibi")
    type->fail(fmt::format("position-embedding-type '{}' is not simulated", name), "learned_absolute, rope, alibi or none");
  draft.set("model.positions", name);
}

void read_dropout(MegatronArguments& arguments, Draft& draft) {
  const auto given = arguments.take("hidden-dropout"), of_attention = arguments.take("attention-dropout");
  const config::Node otherwise = config::Node::scalar(fmt::format("{}", workloads::default_dropout));
  if (!given) draft.infer(fmt::format("model.dropout: {}, Megatron's default", otherwise.as_string()));
  const double hidden = given.value_or(otherwise).as_number(0, 1), attention = of_attention.value_or(otherwise).as_number(0, 1);
  draft.set("model.dropout", given.value_or(otherwise));
  if (hidden != attention) draft.infer(fmt::format("attention-dropout {} counts as hidden-dropout {}", attention, hidden));
}

void read_norms_and_biases(MegatronArguments& arguments, Draft& draft) {
  // The last two of NeMo.
  const std::string norm =
      arguments.choice("normalization", {"LayerNorm", "RMSNorm", "layernorm", "rmsnorm", "layernorm1p", "low_precision_layernorm"});
  draft.set("model.norm", norm == "RMSNorm" || norm == "rmsnorm" ? "rmsnorm" : "layernorm");
  const bool without = arguments.flag("disable-bias-linear"), qkv = arguments.flag("add-qkv-bias");
  const auto biases = arguments.truth("add-bias-linear");  // of programs on top; Megatron's own parser has the switch above
  const bool all = !without && biases.value_or(true);
  draft.set("model.biases", all ? "true" : "false");
  if (!all && qkv) draft.set("model.attention_biases", "qkv");
  const bool over_heads = arguments.flag("qk-layernorm");
  if (over_heads && !arguments.has("multi-latent-attention")) draft.set("model.qk_norm", "true");
  read_dropout(arguments, draft);
  const bool untied = arguments.flag("untie-embeddings-and-output-weights");
  const bool tied = arguments.truth("share-embeddings-and-output-weights").value_or(!untied);
  draft.set("model.tied_embeddings", tied ? "true" : "false");
}

void read_latent_attention(MegatronArguments& arguments, Draft& draft) {
  if (!arguments.flag("multi-latent-attention")) return;
  draft.set("model.mla.q_lora", arguments.whole("q-lora-rank", 0, 0));
  draft.set("model.mla.kv_lora", arguments.whole("kv-lora-rank", 32));
  draft.set("model.mla.qk_nope", arguments.whole("qk-head-dim", 128));
  draft.set("model.mla.qk_rope", arguments.whole("qk-pos-emb-head-dim", 64, 0));
  draft.set("model.mla.v", arguments.whole("v-head-dim", 128));
}

// --window-attn-skip-freq: the last of so many layers has no window.
int full_layers(const config::Node& every) {
  const auto pattern = read_layer_pattern(every);
  if (pattern.every > 0 && pattern.ones.empty()) return pattern.every;
  const auto full = full_every(pattern.ones);
  if (!full) every.fail("windows must leave out the last of every so many layers", "for example 6");
  return *full;
}

// --window-size left,right: so many tokens before the one that attends.
void read_windows(MegatronArguments& arguments, Draft& draft) {
  const auto size = arguments.take("window-size");
  const auto every = arguments.take("window-attn-skip-freq");
  if (!size) return;
  std::string left = size->is_sequence() ? size->items().at(0).as_string() : size->as_string();
  std::erase_if(left, [](char c) { return c == '(' || c == '[' || c == ' '; });
  left = left.substr(0, left.find(','));
  if (left.empty() || left.size() > 8 || left.find_first_not_of("0123456789") != std::string::npos) {
    size->fail("window-size is two numbers, the first of them 0 or more", "for example 127,0");
  }
  const int full = every ? full_layers(*every) : 0;
  if (full == 1) return draft.infer("window-attn-skip-freq leaves every layer out: all attend to the whole sequence");
  draft.set("model.window.tokens", std::stoll(left) + 1);
  if (every) draft.set("model.window.full_every", full);
}

void read_experts(MegatronArguments& arguments, Draft& draft) {
  auto experts = arguments.take("num-experts");
  if (!experts) experts = arguments.take("num-moe-experts");
  if (!experts) return;
  draft.set("model.moe.experts", *experts);
  draft.set("model.moe.top_k", arguments.whole("moe-router-topk", 2));
  const auto own = arguments.take("moe-ffn-hidden-size");
  const auto ffn = own ? own : draft.document().find_path("model.ffn");
  if (ffn) draft.set("model.moe.ffn", *ffn);
  if (const auto latent = arguments.take("moe-latent-size")) draft.set("model.moe.latent", *latent);
  if (const auto shared = arguments.take("moe-shared-expert-intermediate-size"); shared && ffn) {
    const std::int64_t width = shared->as_int(1, 1'000'000), one = ffn->as_int(1, 1'000'000);
    if (width % one != 0) shared->fail(fmt::format("shared experts of {} are not a multiple of an expert's {}", width, one));
    draft.set("model.moe.shared", width / one);
  }
  const auto frequency = arguments.take("moe-layer-freq");
  if (!frequency) return;
  const LayerPattern pattern = read_layer_pattern(*frequency);
  if (pattern.ones.empty()) return draft.set("model.moe.every", pattern.every);
  const auto spaced = evenly_spaced(pattern.ones);
  if (!spaced) frequency->fail("layers with experts must come at equal distances from a first one on");
  draft.set("model.moe.first_dense", spaced->first);
  draft.set("model.moe.every", spaced->every);
}

void require_module(const config::Node& given, const std::string& module, bool experts) {
  const std::string one = experts ? "*E" : "*-";
  if (module != one)
    given.fail(fmt::format("modules of multi-token prediction other than '{}' are not simulated behind this pattern", one));
}

// Modules of multi-token prediction stand behind the pattern of layers ("M*ME/*E/*E"), and are then as many as that says, or, older, once
// for as many as mtp-num-layers says (validate_args in megatron/training/arguments.py, NVIDIA/Megatron-LM).
void read_modules(MegatronArguments& arguments, const config::Node& given, bool experts, Draft& draft) {
  if (const auto older = arguments.take("mtp-hybrid-override-pattern")) require_module(*older, older->as_string(), experts);
  const std::string whole = given.as_string();
  std::int64_t count = 0;
  for (std::size_t slash = whole.find('/'); slash != std::string::npos; ++count) {
    const std::size_t next = whole.find('/', slash + 1);
    require_module(given, whole.substr(slash + 1, next - slash - 1), experts);
    slash = next;
  }
  if (count == 0) return;
  const auto counted = draft.document().find_path("model.mtp");
  if (counted && counted->as_string() != std::to_string(count))
    draft.infer(fmt::format("model.mtp: {}, as many as the pattern has; mtp-num-layers {} is passed over", count, counted->as_string()));
  draft.set("model.mtp", count);
}

// Layers of one block each.
bool read_pattern(MegatronArguments& arguments, Draft& draft) {
  static_cast<void>(arguments.flag("is-hybrid-model"));
  auto given = arguments.take("hybrid-layer-pattern");
  if (const auto older = arguments.take("hybrid-override-pattern"); older && !given) given = older;
  if (!given) return false;
  const std::string whole = given->as_string(), pattern = whole.substr(0, whole.find('/'));
  if (pattern.empty() || pattern.find_first_not_of("M*-E") != std::string::npos) {
    given->fail("layers of a pattern are M (Mamba), * (attention), - (MLP) and E (experts); others are not simulated", "for example M-M*-");
  }
  const auto layers = draft.document().find_path("model.layers");
  if (layers && layers->as_int(1, 1'000'000) != static_cast<std::int64_t>(pattern.size()))
    given->fail(fmt::format("{} layers in the pattern, {} by num-layers", pattern.size(), layers->as_string()));
  draft.set("model.layers", static_cast<std::int64_t>(pattern.size()));
  draft.set("model.pattern", pattern);
  read_modules(arguments, *given, pattern.find('E') != std::string::npos, draft);
  return pattern.find('M') != std::string::npos;
}

void read_mamba(MegatronArguments& arguments, Draft& draft) {
  const auto width = draft.document().find_path("model.hidden");
  const std::int64_t head_dim = arguments.whole("mamba-head-dim", 64), hidden = width ? width->as_int(1, 1'000'000) : 1;
  draft.set("model.mixer.kind", "mamba2");
  draft.set("model.mixer.heads", arguments.whole("mamba-num-heads", std::max<std::int64_t>(1, 2 * hidden / head_dim)));
  draft.set("model.mixer.head_dim", head_dim);
  draft.set("model.mixer.groups", arguments.whole("mamba-num-groups", 8));
  draft.set("model.mixer.state", arguments.whole("mamba-state-dim", 128));
}

// One layer in so many keeps attention: the last of them, or those that a list has zeros for.
void read_mixer_places(const config::Node& frequency, Draft& draft) {
  LayerPattern pattern = read_layer_pattern(frequency);
  if (pattern.ones.empty()) return draft.set("model.mixer.attention_every", pattern.every);
  pattern.ones.flip();
  if (std::ranges::find(pattern.ones, true) == pattern.ones.end()) return;
  const auto spaced = evenly_spaced(pattern.ones);
  if (!spaced) frequency.fail("layers with attention must come at equal distances from a first one on", "for example 4");
  draft.set("model.mixer.attention_every", spaced->every);
  draft.set("model.mixer.first_attention", spaced->first);
}

void read_linear_attention(MegatronArguments& arguments, Draft& draft) {
  const auto variant = arguments.take("experimental-attention-variant");
  const auto frequency = arguments.take("linear-attention-freq");
  if (!variant) return;
  if (variant->as_string() != "gated_delta_net") variant->fail("only gated_delta_net is simulated");
  draft.set("model.mixer.kind", "gated_delta");
  draft.set("model.mixer.heads", arguments.whole("linear-num-value-heads", 32));
  draft.set("model.mixer.head_dim", arguments.whole("linear-value-head-dim", 128));
  draft.set("model.mixer.groups", arguments.whole("linear-num-key-heads", 16));
  draft.set("model.mixer.state", arguments.whole("linear-key-head-dim", 128));
  draft.set("model.mixer.conv", arguments.whole("linear-conv-kernel-dim", 4));
  if (frequency) read_mixer_places(*frequency, draft);
}

void read_mixer(MegatronArguments& arguments, Draft& draft) {
  if (read_pattern(arguments, draft)) read_mamba(arguments, draft);
  read_linear_attention(arguments, draft);
  if (arguments.flag("attention-output-gate")) draft.set("model.attention_gate", "true");
}

}  // namespace

void read_megatron_model(MegatronArguments& arguments, Draft& draft) {
  read_width(arguments, draft);
  read_vocabulary(arguments, draft);
  read_positions(arguments, draft);
  read_norms_and_biases(arguments, draft);
  read_experts(arguments, draft);
  read_latent_attention(arguments, draft);
  read_windows(arguments, draft);
  if (const auto modules = arguments.take("mtp-num-layers")) draft.set("model.mtp", *modules);
  read_mixer(arguments, draft);
  if (arguments.take("activation-func-clamp-value")) draft.set("model.clamps_gate", "true");
}

}  // namespace rehearse::sim
