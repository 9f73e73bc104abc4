// torchtitan's TOML, in the names of its versions from 2024 to the end of 2025 (later ones are configured in Python).
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sim/import/fields.hpp"
#include "sim/import/importer.hpp"
#include "sim/import/torchtitan_flavours.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::int64_t most_in_titan = 1'000'000;

// Whether it has experts.
bool read_titan_model(Fields& fields, Draft& draft) {
  const auto name = fields.take("model.name"), flavour = fields.take("model.flavor");
  if (!name || !flavour) {
    draft.need("model", "the file does not say which: model.name and model.flavor");
    return false;
  }
  for (const TorchtitanFlavour& known : torchtitan_flavours) {
    if (known.name != name->as_string() || known.flavour != flavour->as_string()) continue;
    draft.set("model", known.model);
    draft.infer(fmt::format("model: {}, torchtitan's {} {}", known.model, known.name, known.flavour));
    return known.experts;
  }
  draft.need("model",
             fmt::format("'{} {}' is not among the ready-made ones (rehearse list models)", name->as_string(), flavour->as_string()));
  return false;
}

struct TitanDegrees {
  std::int64_t tp = 1, pp = 1, cp = 1, ep = 1, replicate = 1, shard = -1;
  [[nodiscard]] std::int64_t model_ranks() const { return tp * pp * cp; }
};

TitanDegrees read_titan_degrees(Fields& fields, Draft& draft) {
  const auto take = [&](const char* path, const char* older, const char* key) {
    const auto found = fields.take_any({path, older});
    if (!found) return std::int64_t{1};
    const std::int64_t value = found->as_int(1, most_in_titan);
    if (key != nullptr && value > 1) draft.set(std::string("parallel.") + key, *found);
    return value;
  };
  TitanDegrees degrees;
  degrees.tp = take("parallelism.tensor_parallel_degree", "training.tensor_parallel_degree", "tp");
  degrees.pp = take("parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree", "pp");
  degrees.cp = take("parallelism.context_parallel_degree", "experimental.context_parallel_degree", "cp");
  degrees.ep = take("parallelism.expert_parallel_degree", "experimental.expert_parallel_degree", "ep");
  degrees.replicate = take("parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree", nullptr);
  if (const auto shard = fields.take_any(
          {"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree", "training.data_parallel_degree"})) {
    degrees.shard = shard->as_int(-1, most_in_titan);
    if (degrees.shard == 0) shard->fail("data_parallel_shard_degree is -1 (the rest) or at least 1");
  }
  if (degrees.tp > 1) draft.set("parallel.sp", "true");
  if (degrees.tp > 1) draft.infer("parallel.sp: true, as torchtitan always has it with tensor parallelism");
  const char* expert_tensor = degrees.ep > 1 ? "etp" : nullptr;
  static_cast<void>(take("parallelism.expert_tensor_parallel_degree", "experimental.expert_tensor_parallel_degree", expert_tensor));
  const std::string rotation = fields.word("parallelism.context_parallel_rotate_method", "allgather");
  if (degrees.cp > 1) draft.set("parallel.cp_comm", rotation == "alltoall" ? "ring" : "all-gather");
  return degrees;
}

// The world follows from the degrees where none of them is "the rest".
void read_replicas(const TitanDegrees& degrees, Draft& draft) {
  if (degrees.shard > 0) {
    const std::int64_t dp = degrees.shard * degrees.replicate;
    draft.set("parallel.dp", dp);
    draft.set("gpus", dp * degrees.model_ranks());
  } else {
    draft.need("gpus", "data_parallel_shard_degree is -1: the rest of a world that the file does not size");
  }
  const bool sharded = degrees.shard != 1 || degrees.cp > 1;
  if (!sharded) draft.set("optimizer.sharding", "none");
  if (sharded && degrees.replicate > 1 && degrees.shard > 0) draft.set("optimizer.shard_group", degrees.shard * degrees.cp);
  if (sharded && degrees.replicate > 1 && degrees.shard < 0) {
    draft.need("optimizer.shard_group", "replicas of shard groups, whose size follows from the world: gpus/(tp*pp*replicas)");
  }
}

void read_sharding(Fields& fields, const TitanDegrees& degrees, Draft& draft) {
  const std::string reshard = fields.word("parallelism.fsdp_reshard_after_forward", "default");
  if (degrees.shard != 1 || degrees.cp > 1) {
    const bool keeps = reshard == "never" || (reshard == "default" && degrees.pp > 1);
    draft.set("optimizer.sharding", keeps ? "zero2" : "zero3");
  }
  draft.set("overlap.dp_gradients", "true");
  draft.set("overlap.dp_parameters", "true");
  const bool async =
      fields.truth("parallelism.enable_async_tensor_parallel", false) || fields.truth("experimental.enable_async_tensor_parallel", false);
  if (async && degrees.tp > 1) draft.set("overlap.tp", "true");
  if (const auto kind = fields.take("optimizer.name"); kind && !kind->as_string().starts_with("Adam")) {
    kind->fail(fmt::format("optimizer '{}' is not simulated", kind->as_string()), "AdamW");
  }
}

void read_schedule(Fields& fields, const TitanDegrees& degrees, Draft& draft) {
  const auto name = fields.take_any({"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"});
  if (degrees.pp == 1) return;
  const std::string schedule =
      name ? name->as_choice({"1F1B", "Interleaved1F1B", "GPipe", "InterleavedZeroBubble", "ZBVZeroBubble", "1f1b", "interleaved_1f1b"})
           : "1F1B";
  if (schedule == "InterleavedZeroBubble")
    name->fail("InterleavedZeroBubble is not simulated", "1F1B, Interleaved1F1B, GPipe or ZBVZeroBubble");
  const bool interleaved = schedule == "Interleaved1F1B" || schedule == "interleaved_1f1b";
  if (interleaved) {
    draft.set("parallel.vpp", 2);
    draft.infer("parallel.vpp: 2, torchtitan's stages per rank of a looped schedule");
  }
  draft.set("schedule", schedule == "GPipe" ? "gpipe" : schedule == "ZBVZeroBubble" ? "zb-v" : interleaved ? "interleaved-1f1b" : "1f1b");
}

void read_titan_batch(Fields& fields, const TitanDegrees& degrees, std::int64_t gpus, Draft& draft) {
  const auto local = fields.take_any({"training.local_batch_size", "training.batch_size"});
  const auto global = fields.take("training.global_batch_size"), sequence = fields.take("training.seq_len");
  const auto micro = fields.take_any({"parallelism.pipeline_parallel_microbatch_size", "experimental.pipeline_parallel_microbatch_size"});
  sequence ? draft.set("batch.sequence", *sequence) : draft.need("batch.sequence", "there is no training.seq_len");
  if (!local) return draft.need("batch.micro", "there is no training.local_batch_size");
  if (degrees.pp == 1) {
    draft.set("batch.micro", *local);
  } else {
    micro ? draft.set("batch.micro", *micro) : draft.set("batch.micro", 1);
    if (!micro) draft.infer("batch.micro: 1, torchtitan's default in a pipeline");
  }
  const bool of_world = !global || (global->is_scalar() && global->as_string() == "-1");
  if (!of_world) return draft.set("batch.global", *global);
  const bool divides = gpus > 0 && gpus % (degrees.model_ranks() * degrees.replicate) == 0;
  if (degrees.shard < 0 && !divides)
    return draft.need("batch.global", fmt::format("{} sequences for each replica of a world of no given size", local->as_string()));
  const std::int64_t all =
      local->as_int(1, most_in_titan) * (degrees.shard < 0 ? gpus / degrees.model_ranks() : degrees.shard * degrees.replicate);
  draft.set("batch.global", all);
  draft.infer(fmt::format("batch.global: {}, {} for each replica", all, local->as_string()));
}

// Whether a word, or one of a list of them, holds this one.
bool names(const Node& words, const char* wanted) {
  const auto is = [&](const Node& word) { return word.is_scalar() && word.as_string().find(wanted) != std::string::npos; };
  if (!words.is_sequence()) return is(words);
  for (const Node& item : words.items()) {
    if (is(item)) return true;
  }
  return false;
}

// What torchtitan's converters do in fewer bits: linear modules, which routed experts are not, and grouped products of experts.
struct Converted {
  bool linear = false, experts = false, mx = false;
};

Converted converted(Fields& fields) {
  Converted all;
  all.linear = fields.truth("float8.enable_float8_linear", false);
  const auto converters = fields.take("model.converters");
  if (!converters) return all;
  const auto has = [&](const char* name) { return names(*converters, name); };
  const bool grouped = has("grouped_mm"), linear = has("quantize.linear") || has("quantize.dense");
  const bool older = !grouped && !linear && (has("float8") || has("mx"));  // whose experts are named apart
  all.linear = all.linear || linear || older;
  const auto named = fields.take_any({"float8.moe_fqns_prototype", "mx.moe_fqns_prototype"});
  all.experts = grouped || (older && named && names(*named, "expert"));
  all.mx = has("mx");
  return all;
}

// torchao's Float8Linear finds scales from the values (torchtitan/components/quantization/float8.py): of whole tensors unless a recipe is
// named, whose weights alone can be gathered in 8 bits. Its grouped products have scales of rows, and no key for another recipe.
void read_float8(Fields& fields, const Converted& narrow, Draft& draft) {
  if (!narrow.linear) return draft.set("precision.recipe", "rowwise");
  const auto recipe = fields.take_any({"quantize.linear.float8.recipe_name", "float8.recipe_name"});
  const std::string name = recipe ? recipe->as_choice({"tensorwise", "rowwise", "rowwise_with_gw_hp"}) : "tensorwise";
  draft.set("precision.recipe", name);
  if (narrow.experts && name != "rowwise")
    draft.infer(fmt::format("precision.recipe: {} of experts too, which have scales of rows there", name));
  const auto older = fields.take("float8.enable_fsdp_float8_all_gather");
  const auto newer = fields.take("quantize.linear.float8.enable_fsdp_float8_all_gather");
  if (older && newer)
    newer->fail("float8.enable_fsdp_float8_all_gather says the same in torchtitan before October 2025", "leave one of them out");
  const auto gathers = older ? older : newer;
  if (!gathers || !gathers->as_bool()) return;
  if (recipe) gathers->fail("torchtitan takes a recipe or gathers in float8, not both", "leave recipe_name out, or say false here");
  draft.set("precision.param_gather", "fp8");
}

void read_titan_precision(Fields& fields, bool experts, Draft& draft) {
  const Converted narrow = converted(fields);
  const std::string parameters = fields.word("training.mixed_precision_param", "bfloat16"),
                    reduced = fields.word("training.mixed_precision_reduce", "float32");
  const std::string type = parameters == "float32" ? "fp32" : narrow.linear ? "fp8" : "bf16";
  const bool apart = experts && type != "fp32" && narrow.linear != narrow.experts;
  const bool few_bits = type == "fp8" || (apart && narrow.experts);
  if (reduced == "float32" && !few_bits) return draft.set("precision", type);
  draft.set("precision.compute", type);
  if (reduced != "float32") draft.set("precision.gradients", "bf16");
  if (apart) draft.set("precision.experts", narrow.experts ? "fp8" : "bf16");
  if (!few_bits) return;
  if (narrow.mx) return draft.set("precision.recipe", "mxfp8");
  read_float8(fields, {.linear = narrow.linear, .experts = experts && narrow.experts}, draft);
}

void read_recompute(Fields& fields, const TitanDegrees& degrees, Draft& draft) {
  const auto mode = fields.take("activation_checkpoint.mode"), option = fields.take("activation_checkpoint.selective_ac_option");
  const std::string name = mode ? mode->as_choice({"none", "selective", "full", "memory_budget"}) : "selective";
  if (name == "memory_budget") mode->fail("activation checkpointing by memory budget is not simulated", "none, selective or full");
  if (name != "selective") return draft.set("recompute", name);
  const std::string what = option ? option->as_string() : "2";
  if (what == "op") {
    draft.set("recompute", "selective");
    return draft.infer("recompute: selective, which in this stack is 'op': attention and every second product are kept");
  }
  const std::int64_t every = option ? option->as_int(1, 10'000) : 2;
  const auto model = draft.document().find("model");
  draft.infer(fmt::format("recompute: one layer in {}", every));
  if (every == 1) return draft.set("recompute", "full");
  draft.need("recompute", fmt::format("one layer in {} of a stage: {{full_layers: layers/{}}}{}", every, every * degrees.pp,
                                      model ? "" : " of your model"));
}

// Stacks with and without torch.compile of the blocks; the loss is compiled apart. That of dense models in eager mode has it in eager mode.
void read_compile(Fields& fields, bool experts, Draft& draft) {
  const bool enabled = fields.truth("compile.enable", false) || fields.truth("training.compile", false);
  const auto components = fields.take("compile.components");
  const auto compiles = [&](const char* component) { return enabled && (!components || names(*components, component)); };
  const bool blocks = compiles("model"), loss = compiles("loss"), eager_loss_of_stack = !experts && !blocks;
  const std::string stack = fmt::format("torchtitan{}{}", experts ? "-2025" : "", blocks ? "" : "-eager");
  draft.set("software", stack);
  if (loss == eager_loss_of_stack) {
    draft.override_with("software.fusions.cross_entropy", loss ? "true" : "false");
    draft.override_with("software.memory.loss", loss ? "4" : "14");
  }
  if (!blocks) draft.infer(fmt::format("software: {}, whose blocks are not compiled: kernels and host time of eager mode", stack));
}

class Torchtitan final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "torchtitan: a TOML file"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    Fields fields(load_toml(request.path));
    Draft draft(Draft::Kind::job);
    const bool experts = read_titan_model(fields, draft);
    const TitanDegrees degrees = read_titan_degrees(fields, draft);
    read_replicas(degrees, draft);
    read_sharding(fields, degrees, draft);
    read_schedule(fields, degrees, draft);
    read_titan_batch(fields, degrees, request.gpus, draft);
    read_titan_precision(fields, experts, draft);
    read_recompute(fields, degrees, draft);
    read_compile(fields, experts, draft);
    draft.need("cluster", "the file does not say on which machines (rehearse list clusters)");
    fields.report(draft, {"job.",
                          "profiling.",
                          "metrics.",
                          "lr_scheduler.",
                          "checkpoint.",
                          "comm.",
                          "optimizer.",
                          "validation.",
                          "model.tokenizer",
                          "model.hf_assets",
                          "model.print",
                          "training.max_norm",
                          "training.steps",
                          "training.warmup",
                          "training.dataset",
                          "training.seed",
                          "training.deterministic",
                          "debug.",
                          "fault_tolerance.",
                          "training.gc_freq",
                          "training.dtype"});
    return draft;
  }
};

const ImporterRegistry::Registration<Torchtitan> torchtitan_registration("torchtitan");

}  // namespace
}  // namespace rehearse::sim
