// nanotron YAML.
#include <fmt/format.h>

#include "sim/import/fields.hpp"
#include "sim/import/importer.hpp"
#include "workloads/model_limits.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::int64_t most_in_nanotron = 1'000'000;

void read_nanotron_model(Fields& fields, Draft& draft) {
  const auto copy = [&](const char* from, const char* to) {
    const auto value = fields.take(std::string("model.model_config.") + from);
    value ? draft.set(std::string("model.") + to, *value)
          : draft.need(std::string("model.") + to, fmt::format("there is no model_config.{}", from));
  };
  copy("num_hidden_layers", "layers");
  copy("hidden_size", "hidden");
  copy("num_attention_heads", "heads");
  copy("intermediate_size", "ffn");
  copy("vocab_size", "vocab");
  if (const auto heads = fields.take("model.model_config.num_key_value_heads")) draft.set("model.kv_heads", *heads);
  const auto activation = fields.take("model.model_config.hidden_act");
  if (activation) static_cast<void>(activation->as_choice({"silu", "gelu", "gelu_pytorch_tanh"}));
  draft.set("model.activation", !activation || activation->as_string() == "silu" ? "swiglu" : "geglu");
  draft.set("model.tied_embeddings", fields.truth("model.model_config.tie_word_embeddings", false) ? "true" : "false");
  draft.set("model.biases", "false");
  draft.set("model.norm", "rmsnorm");
  draft.set("model.dropout", "0");
  if (const auto experts = fields.take("model.model_config.moe_config")) experts->fail("nanotron's layers with experts are not imported");
}

struct NanotronDegrees {
  std::int64_t dp = 1, tp = 1, pp = 1, cp = 1;
};

NanotronDegrees read_degrees(Fields& fields, Draft& draft) {
  const auto take = [&](const char* from, const char* to) {
    const auto value = fields.take(std::string("parallelism.") + from);
    if (!value) return std::int64_t{1};
    draft.set(std::string("parallel.") + to, *value);
    return value->as_int(1, most_in_nanotron);
  };
  NanotronDegrees degrees{take("dp", "dp"), take("tp", "tp"), take("pp", "pp"), take("context_parallel_size", "cp")};
  if (const auto experts = fields.take("parallelism.expert_parallel_size"); experts && experts->as_int(1, most_in_nanotron) > 1) {
    experts->fail("expert parallelism of nanotron is not imported");
  }
  const std::string mode = fields.word("parallelism.tp_mode", "ALL_REDUCE");
  if (degrees.tp > 1 && mode == "REDUCE_SCATTER") draft.set("parallel.sp", "true");
  if (fields.truth("parallelism.tp_linear_async_communication", false) && degrees.tp > 1) draft.set("overlap.tp", "true");
  if (const auto engine = fields.take("parallelism.pp_engine"); engine && degrees.pp > 1) {
    draft.set("schedule", engine->as_choice({"1f1b", "afab"}) == "afab" ? "gpipe" : "1f1b");
  }
  draft.set("gpus", degrees.dp * degrees.tp * degrees.pp * degrees.cp);
  draft.infer(fmt::format("gpus: {}, dp x tp x pp", degrees.dp * degrees.tp * degrees.pp * degrees.cp));
  return degrees;
}

// The global batch is dp x micro x accumulation and nothing else.
void read_nanotron_batch(Fields& fields, const NanotronDegrees& degrees, Draft& draft) {
  const auto micro = fields.take("tokens.micro_batch_size"), sequence = fields.take("tokens.sequence_length");
  const std::int64_t accumulation = fields.whole("tokens.batch_accumulation_per_replica", 1, 1, most_in_nanotron);
  sequence ? draft.set("batch.sequence", *sequence) : draft.need("batch.sequence", "there is no tokens.sequence_length");
  if (!micro) return draft.need("batch.micro", "there is no tokens.micro_batch_size");
  draft.set("batch.micro", *micro);
  const std::int64_t global = degrees.dp * micro->as_int(1, most_in_nanotron) * accumulation;
  draft.set("batch.global", global);
  draft.infer(fmt::format("batch.global: {}, {} replicas x {} x {} accumulated", global, degrees.dp, micro->as_string(), accumulation));
}

void read_optimizer(Fields& fields, const NanotronDegrees& degrees, Draft& draft) {
  const auto kind = fields.take_any({"optimizer.optimizer_factory.name", "optimizer.name"});
  if (kind && kind->as_string().find("adam") == std::string::npos)
    kind->fail(fmt::format("optimizer '{}' is not simulated", kind->as_string()), "adamW");
  const std::int64_t stage = fields.whole("optimizer.zero_stage", 0, 0, 3);
  draft.set("optimizer.sharding", stage == 0 ? "none" : fmt::format("zero{}", stage));
  if (stage == 0 && degrees.dp > 1) {
    draft.set("overlap.dp_gradients", "true");
    draft.infer("overlap.dp_gradients: true, since without ZeRO the hooks of PyTorch's DDP reduce gradients behind backward");
  }
  const auto type = fields.take("model.dtype");
  const std::string compute = !type                                                               ? "bf16"
                              : type->as_choice({"bfloat16", "float16", "float32"}) == "bfloat16" ? "bf16"
                              : type->as_string() == "float16"                                    ? "fp16"
                                                                                                  : "fp32";
  if (fields.truth("optimizer.accumulate_grad_in_fp32", true) || compute == "fp32") return draft.set("precision", compute);
  draft.set("precision.compute", compute);
  draft.set("precision.weights", compute);
  draft.set("precision.gradients", compute);
}

class Nanotron final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "nanotron: YAML"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    Fields fields(Node::load_file(request.path));
    static_cast<void>(fields.root().at("parallelism").keys());
    Draft draft(Draft::Kind::job);
    read_nanotron_model(fields, draft);
    const NanotronDegrees degrees = read_degrees(fields, draft);
    draft.set("software", "nanotron");
    const std::int64_t multiple = fields.whole("model.make_vocab_size_divisible_by", 1, 1, workloads::widest);
    if (multiple > 1) draft.override_with("software.vocab_multiple", std::to_string(multiple));
    read_nanotron_batch(fields, degrees, draft);
    read_optimizer(fields, degrees, draft);
    if (fields.truth("parallelism.recompute_layer", false)) draft.set("recompute", "full");
    draft.need("cluster", "the file does not say on which machines (rehearse list clusters)");
    fields.report(draft,
                  {"checkpoints.", "data_stages", "data.", "general.", "lighteval", "logging.", "profiler", "tokenizer.", "optimizer.",
                   "tokens.", "model.init_method", "model.model_config.", "model.ddp_bucket", "s3_upload", "metrics_logging"});
    return draft;
  }
};

const ImporterRegistry::Registration<Nanotron> nanotron_registration("nanotron");

}  // namespace
}  // namespace rehearse::sim
