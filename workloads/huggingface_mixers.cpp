// Mixers in a config.json: Mamba-2 of Nemotron-H, Bamba and Granite, gated delta rules of Qwen3-Next and Qwen3.5.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/huggingface_fields.hpp"
#include "workloads/layer_pattern.hpp"
#include "workloads/mixer.hpp"

namespace rehearse::workloads {
namespace {

using config::Node;

void spread_evenly(const Node& where, const std::vector<bool>& attends, MixerSpec& mixer) {
  if (std::ranges::find(attends, true) == attends.end()) return;
  const auto spaced = evenly_spaced(attends);
  if (!spaced) where.fail("layers with attention must come at equal distances from a first one on");
  mixer.first_attention = spaced->first;
  mixer.attention_every = spaced->every;
}

// "M-M*-" or, newer, a list of words.
std::optional<std::string> blocks_of(HuggingfaceFields& fields) {
  if (const auto pattern = fields.given("hybrid_override_pattern")) return pattern->as_string();
  const auto types = fields.given("layers_block_type");
  if (!types) return std::nullopt;
  std::string blocks;
  for (const Node& type : types->items()) {
    const std::string name = type.as_choice({"mamba", "attention", "mlp", "moe"});
    blocks += name == "mamba" ? 'M' : name == "attention" ? '*' : name == "mlp" ? '-' : 'E';
  }
  return blocks;
}

// By a list of kinds, a list of layers, or every so many.
void read_attention_layers(HuggingfaceFields& fields, const Model& model, MixerSpec& mixer) {
  std::vector<bool> attends(static_cast<std::size_t>(model.layers), false);
  if (const auto types = fields.given("layer_types")) {
    const std::vector<Node> named = types->items();
    if (named.size() != attends.size()) types->fail(fmt::format("{} kinds for {} layers", named.size(), model.layers));
    for (std::size_t i = 0; i < named.size(); ++i) {
      const std::string name = named[i].as_choice({"full_attention", "attention", "linear_attention", "mamba"});
      attends[i] = name == "full_attention" || name == "attention";
    }
    return spread_evenly(*types, attends, mixer);
  }
  if (const auto listed = fields.given("attn_layer_indices")) {
    for (const Node& layer : listed->items()) attends[static_cast<std::size_t>(layer.as_int(0, model.layers - 1))] = true;
    return spread_evenly(*listed, attends, mixer);
  }
  mixer.attention_every = fields.whole({"full_attention_interval"}, {1, most_layers});
  mixer.first_attention = mixer.attention_every - 1;
}

}  // namespace

void read_huggingface_mixer(HuggingfaceFields& fields, const HuggingfaceFamily& family, Model& model) {
  MixerSpec mixer;
  mixer.kind = family.mixer;
  mixer.heads = fields.whole({"mamba_num_heads", "mamba_n_heads", "linear_num_value_heads"});
  mixer.head_dim = fields.whole({"mamba_head_dim", "mamba_d_head", "linear_value_head_dim"});
  const Node groups = fields.required({"n_groups", "mamba_n_groups", "linear_num_key_heads"});
  mixer.groups = static_cast<int>(groups.as_int(1, widest));
  if (mixer.heads % mixer.groups != 0) groups.fail(fmt::format("{} heads are not a multiple of {}", mixer.heads, mixer.groups));
  mixer.state = fields.whole({"ssm_state_size", "mamba_d_state", "linear_key_head_dim"});
  mixer.conv = fields.whole_or({"conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim"}, mixer.conv, {1, 1024});
  mixer.chunk = MixerRegistry::get(mixer.kind).default_chunk();  // the stack's: Megatron-Core does not read the file's
  static_cast<void>(fields.given({"chunk_size", "mamba_chunk_size"}));
  if (const auto blocks = blocks_of(fields)) {
    const Node where = fields.required({"hybrid_override_pattern", "layers_block_type"});
    const bool moe = model.moe.has_value();
    if (blocks->find_first_not_of("M*-E") != std::string::npos || static_cast<int>(blocks->size()) != model.layers ||
        (blocks->find('E') != std::string::npos) != moe) {
      where.fail(fmt::format("a pattern of {} letters M, *, -{} is needed", model.layers, moe ? " and E" : ""));
    }
    model.pattern = *blocks;
    if (const auto module = fields.given("mtp_hybrid_override_pattern"); module && module->as_string() != (moe ? "*E" : "*-"))
      module->fail("modules of multi-token prediction are attention and experts (*E), or of a model without experts an MLP (*-)");
    if (blocks->find('M') == std::string::npos) return;
  } else {
    read_attention_layers(fields, model, mixer);
  }
  model.mixer = mixer;
}

}  // namespace rehearse::workloads
