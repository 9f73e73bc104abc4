// The precision of a job in Megatron-LM's arguments, and what goes by it.
#include "sim/import/megatron_arguments.hpp"
#include "workloads/model_limits.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

// In how many bits products are; "" in 32, since nothing says another. The fields of Megatron-Bridge's containers are fp8 and fp4.
std::string read_compute(MegatronArguments& arguments) {
  const bool bf16 = arguments.flag("bf16"), fp16 = arguments.flag("fp16");
  const auto fp8 = arguments.take("fp8-format"), fp8_too = arguments.take("fp8");
  const auto fp4 = arguments.take("fp4-format"), fp4_too = arguments.take("fp4");
  return fp4 || fp4_too ? "fp4" : fp8 || fp8_too ? "fp8" : bf16 ? "bf16" : fp16 ? "fp16" : "";
}

// Scales of products in 8 bits; in 4 bits Megatron-LM knows NVFP4 alone.
std::optional<Node> read_recipe(MegatronArguments& arguments, std::string_view compute, Draft& draft) {
  const auto of_fp8 = arguments.take("fp8-recipe"), of_fp4 = arguments.take("fp4-recipe");
  if (compute == "fp8") return of_fp8;
  if (compute != "fp4") return std::nullopt;
  if (!of_fp4 || of_fp4->as_string() == "nvfp4") return of_fp4;
  draft.puzzle("fp4-recipe " + of_fp4->as_string());
  return std::nullopt;
}

struct WideLayers {
  std::int64_t at_start = 0, at_end = 0;
};

// Layers at the ends whose products stay in bf16: one at either, where nothing says how many (TransformerConfig of Megatron-Core).
WideLayers read_wide_layers(MegatronArguments& arguments, bool narrow, Draft& draft) {
  constexpr const char *first_last = "first-last-layers-bf16", *start = "num-layers-at-start-in-bf16", *end = "num-layers-at-end-in-bf16";
  const bool on = arguments.flag(first_last);
  if (on && narrow) return {arguments.whole(start, 1, 0, workloads::most_layers), arguments.whole(end, 1, 0, workloads::most_layers)};
  if (on) draft.ignore(std::string(first_last) + " (no products are in fp8 or fp4)");
  for (const char* name : {start, end}) {
    if (arguments.take(name)) draft.ignore(std::string(name) + " (first-last-layers-bf16 is not given, or nothing is in fp8 or fp4)");
  }
  return {};
}

}  // namespace

void read_megatron_precision(MegatronArguments& arguments, Draft& draft) {
  const std::string compute = read_compute(arguments);
  const bool narrow_gradients = arguments.flag("grad-reduce-in-bf16");
  if (arguments.flag("accumulate-allreduce-grads-in-fp32") && narrow_gradients) draft.infer("gradients are reduced in bf16");
  const auto recipe = read_recipe(arguments, compute, draft);
  const WideLayers wide = read_wide_layers(arguments, compute == "fp8" || compute == "fp4", draft);
  if (compute.empty()) {
    draft.set("precision", "fp32");
    return draft.infer("precision: fp32, since neither --bf16 nor --fp16 is given");
  }
  const bool gathers = arguments.flag("fp8-param-gather"), narrow_input = arguments.flag("activation-func-fp8-input-store");
  const bool ends = wide.at_start + wide.at_end > 0;
  if (!narrow_gradients && !gathers && !recipe && !narrow_input && !ends) return draft.set("precision", compute);
  draft.set("precision.compute", compute);
  if (recipe) draft.set("precision.recipe", *recipe);
  if (wide.at_start > 0) draft.set("precision.bf16_at_start", wide.at_start);
  if (wide.at_end > 0) draft.set("precision.bf16_at_end", wide.at_end);
  if (narrow_input) draft.set("precision.activation_input", "fp8");
  if (gathers && recipe && recipe->as_string() == "mxfp8") {
    draft.infer("precision.param_gather: left out, since parameters in mxfp8 are gathered in bf16");
  } else if (gathers) {
    draft.set("precision.param_gather", "fp8");
  }
  if (!narrow_gradients) return;
  draft.set("precision.weights", arguments.flag("fp16") ? "fp16" : "bf16");
  draft.set("precision.gradients", "bf16");
  draft.set("precision.optimizer", "fp32");
}

std::optional<std::int64_t> megatron_multiple(workloads::DType compute, workloads::Scaling recipe) {
  if (compute == workloads::DType::fp4) return std::nullopt;
  return compute == workloads::DType::fp8 && recipe == workloads::Scaling::mxfp8 ? 32 : 16;
}

}  // namespace rehearse::sim
