// Models from HuggingFace's config.json. Families are declared in huggingface_families.cpp, one row each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/node.hpp"
#include "workloads/model.hpp"

namespace rehearse::workloads {

// `path` names a config.json, relative to the file it stands in. Without a name the model is called what the file says (_name_or_path),
// else after the file, config.json with its folder. The limits are those of the model reader; positions point into the file.
[[nodiscard]] Model read_huggingface(const config::Node& path, const std::string& name);

struct HuggingfaceModel {
  Model model;
  std::vector<std::string> inferred;  // what the file does not say as such
  std::vector<std::string> unread;    // fields that nothing of the model was taken from
};

// The content of a config.json. Of a multimodal model the text model (text_config, llm_config, language_config). Patterns of
// layers that a model file cannot say are refused.
[[nodiscard]] HuggingfaceModel read_huggingface_config(const config::Node& json, const std::string& name);

// What the name of an architecture implies: the defaults of its configuration class in transformers 4.57.
struct HuggingfaceFamily {
  std::string_view architecture, type;  // "LlamaForCausalLM", model_type "llama"
  bool gated = true;
  Norm norm = Norm::rmsnorm;
  Positions positions = Positions::rope;
  bool biases = false;
  AttentionBiases attention_biases = AttentionBiases::none;  // whatever the file says; of `biases` those too
  AttentionBiases attention_bias = AttentionBiases::all;     // what the field attention_bias switches on
  bool tied = false;
  int head_dim = 0;  // when config.json gives none; 0: hidden / heads
  bool qk_norm = false, post_norms = false, clamps_gate = false;
  ParallelResidual parallel_residual = ParallelResidual::none;  // where use_parallel_residual switches it, what it switches on
  bool experts = false, latent = false;
  bool windows = false;  // sliding_window applies without being switched on
  int full_every = 0;    // and leaves out the last of so many layers
  double dropout = 0;
  std::string_view mixer = {};  // kind of what layers have in the place of attention
  bool attention_gate = false;
  std::string_view refused = {};  // why it cannot be read
};

[[nodiscard]] const std::vector<HuggingfaceFamily>& huggingface_families();

}  // namespace rehearse::workloads
