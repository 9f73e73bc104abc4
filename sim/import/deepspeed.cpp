// A DeepSpeed configuration: batch, precision and ZeRO. Model, machines and lengths are somebody else's.
#include <fmt/format.h>

#include "sim/import/fields.hpp"
#include "sim/import/importer.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::int64_t most_in_deepspeed = 10'000'000;

bool is_auto(const std::optional<Node>& value) { return value && value->is_scalar() && value->as_string() == "auto"; }

// HuggingFace's Trainer fills "auto" in.
std::optional<Node> said(Fields& fields, std::string_view path) {
  auto value = fields.take(path);
  return is_auto(value) ? std::nullopt : value;
}

// global = micro x accumulation x replicas: of four numbers any three, and they must agree.
void read_deepspeed_batch(Fields& fields, Draft& draft) {
  const auto global = said(fields, "train_batch_size"), micro = said(fields, "train_micro_batch_size_per_gpu"),
             accumulation = said(fields, "gradient_accumulation_steps");
  const std::int64_t all = global ? global->as_int(1, most_in_deepspeed) : 0, one = micro ? micro->as_int(1, most_in_deepspeed) : 0;
  const std::int64_t steps = accumulation ? accumulation->as_int(1, most_in_deepspeed) : 0;
  if (all > 0 && one > 0 && all % (one * std::max<std::int64_t>(steps, 1)) != 0) {
    global->fail(fmt::format("train_batch_size ({}) is not a multiple of micro-batch x accumulation ({} x {})", all, one,
                             std::max<std::int64_t>(steps, 1)));
  }
  if (all > 0) draft.set("batch.global", *global);
  if (one > 0) draft.set("batch.micro", *micro);
  if (all > 0 && one > 0 && steps > 0) {
    draft.set("parallel.dp", all / (one * steps));
    draft.infer(fmt::format("parallel.dp: {} = {} / ({} x {})", all / (one * steps), all, one, steps));
  }
  draft.need("batch.micro", "there is no train_micro_batch_size_per_gpu");
  draft.need("batch.global", "there is no train_batch_size; it is micro-batch x accumulation x replicas");
  draft.need("batch.sequence", "the file does not say how long sequences are");
}

// Elements of a 16-bit buffer, or a number of parameters; DeepSpeed writes 5e8, too.
std::optional<double> counted(Fields& fields, std::string_view path, Draft& draft, std::string_view otherwise) {
  const auto value = fields.take(path);
  if (is_auto(value)) draft.infer(fmt::format("{}: {}, where the file says 'auto' and HuggingFace's Trainer decides", path, otherwise));
  return value && !is_auto(value) ? std::optional(value->as_number(1, 1e12)) : std::nullopt;
}

// Keys that DeepSpeed has since PyTorch 2: torch.compile of the model, torch.autocast, checkpoints of its pipeline without re-entrance.
bool of_pytorch_2(const Node& root) {
  return root.find("compile") || root.find("torch_autocast") || root.find_path("pipeline.use_reentrant");
}

// DeepSpeed's engine under HuggingFace's models, and at stage 0 under Megatron's kernels, with the buffers that the file sizes.
void read_stack(Fields& fields, Draft& draft, std::int64_t stage, bool overlaps) {
  if (stage == 0) {
    const bool later = of_pytorch_2(fields.root());
    draft.set("software", later ? "deepspeed-3d-2025" : "deepspeed-3d");
    return draft.infer(
        later ? "software: deepspeed-3d-2025, DeepSpeed's engines under Megatron's kernels on PyTorch 2, which the file's keys ask for"
              : "software: deepspeed-3d, DeepSpeed's engines under Megatron's kernels (on PyTorch 2: --set software=deepspeed-3d-2025)");
  }
  constexpr double default_bucket = 5e8, element_bytes = 2;
  const auto bucket = counted(fields, "zero_optimization.reduce_bucket_size", draft, "5e8");
  const double bytes = element_bytes * bucket.value_or(default_bucket);
  draft.set("software.like", "deepspeed");
  if (stage < 3 && (bucket || !overlaps)) draft.set("software.memory.buckets", fmt::format("{} B", bytes * (overlaps ? 2 : 1)));
  if (stage == 3) {
    if (bucket) draft.set("software.memory.zero3_buckets", fmt::format("{} B", bytes));
    const auto live = counted(fields, "zero_optimization.stage3_max_live_parameters", draft, "1e9");
    if (live) draft.set("software.memory.live_parameters", fmt::format("{}", *live));
    const auto at_once = counted(fields, "zero_optimization.sub_group_size", draft, "1e9");
    if (at_once) draft.set("software.memory.update_at_once", fmt::format("{}", *at_once));
  }
  draft.infer(
      "software: deepspeed, today's ZeRO under HuggingFace's models (until February 2026: --set software.like=deepspeed-2025, "
      "Megatron-DeepSpeed's: --set software=deepspeed-3d)");
}

// ZeRO adds gradients up in the weights' type, as the stack says, unless data_types names theirs.
void set_precision(Fields& fields, Draft& draft, const std::string& type) {
  const auto dtype = said(fields, "data_types.grad_accum_dtype");
  const std::string gradients = dtype ? dtype->as_choice({"fp32", "bf16", "fp16"}) : "";
  if (type.empty()) return;
  if (gradients.empty()) return draft.set("precision", type);
  draft.set("precision.compute", type);
  draft.set("precision.gradients", gradients);
}

void read_host(Fields& fields, Draft& draft, std::int64_t stage) {
  const auto device = fields.take("zero_optimization.offload_optimizer.device");
  const bool host =
      (device && device->as_choice({"none", "cpu", "nvme"}) != "none") || fields.truth("zero_optimization.cpu_offload", false);
  if (device && device->as_string() == "nvme") device->fail("an optimizer on NVMe is not simulated", "cpu");
  if (host) draft.set("optimizer.device", "cpu");
  if (const auto weights = fields.take("zero_optimization.offload_param.device");
      weights && weights->as_choice({"none", "cpu", "nvme"}) != "none") {
    if (weights->as_string() == "nvme") weights->fail("weights on NVMe are not simulated", "cpu");
    if (!host) weights->fail("weights on the host without their optimizer are not simulated", "offload_optimizer: {device: cpu}");
    if (stage == 3) draft.set("offload.weights", "true");  // below it DeepSpeed has none there (docs/_pages/config-json.md)
  }
}

void read_zero(Fields& fields, Draft& draft, const std::string& type) {
  const std::int64_t stage = fields.whole("zero_optimization.stage", 0, 0, 3);
  // Without ZeRO the optimizer for bf16 still divides its state among the replicas (deepspeed/runtime/bf16_optimizer.py).
  const bool own = stage == 0 && type == "bf16";
  if (own) draft.infer("optimizer.sharding: zero1, which DeepSpeed's optimizer for bf16 does at stage 0");
  draft.set("optimizer.sharding", stage == 0 && !own ? "none" : fmt::format("zero{}", own ? 1 : stage));
  read_host(fields, draft, stage);
  // DeepSpeed overlaps by default with stage 3 alone.
  const bool overlaps = fields.truth("zero_optimization.overlap_comm", stage == 3);
  draft.set("overlap.dp_gradients", overlaps ? "true" : "false");
  if (stage == 3) draft.set("overlap.dp_parameters", "true");
  read_stack(fields, draft, stage, overlaps);
  set_precision(fields, draft, type);
  if (const auto group = said(fields, "zero_optimization.zero_hpz_partition_size"); group && group->as_int(1, most_in_deepspeed) > 1) {
    group->fail("hierarchical partitioning of weights alone (hpZ) is not simulated");
  }
  if (const auto group = said(fields, "zero_optimization.mics_shard_size"); group && group->as_int(-1, most_in_deepspeed) > 0)
    draft.set("optimizer.shard_group", *group);
}

// Of the products and weights; empty: the Trainer decides.
std::string read_type(Fields& fields, Draft& draft) {
  const auto by_name = fields.take("bf16.enabled"), older = fields.take("bfloat16.enabled"), half = fields.take("fp16.enabled");
  const auto on = [](const std::optional<Node>& value) { return value && !is_auto(value) && value->as_bool(); };
  const bool bf16 = on(by_name) || on(older), fp16 = on(half);
  if (!bf16 && !fp16 && (is_auto(by_name) || is_auto(older) || is_auto(half))) {
    draft.need("precision", "bf16 and fp16 are 'auto', which HuggingFace's Trainer decides");
    return "";
  }
  if (bf16 && fp16) half->fail("bf16 and fp16 are both switched on");
  if (!bf16 && !fp16) draft.infer("precision: fp32, since neither bf16 nor fp16 is switched on");
  return bf16 ? "bf16" : fp16 ? "fp16" : "fp32";
}

class DeepSpeed final : public Importer {
 public:
  [[nodiscard]] std::string_view summary() const override { return "DeepSpeed: the JSON of its configuration"; }
  [[nodiscard]] Draft read(const ImportRequest& request) const override {
    Fields fields(Node::load_file(request.path));
    Draft draft(Draft::Kind::job);
    if (!fields.root().is_map()) fields.root().fail("a DeepSpeed configuration is a mapping");
    draft.need("model", "the file does not say which: a ready-made name, or {hf: config.json}");
    draft.need("cluster", "the file does not say on which machines (rehearse list clusters)");
    draft.need("gpus", "the file does not say on how many");
    read_deepspeed_batch(fields, draft);
    read_zero(fields, draft, read_type(fields, draft));
    if (const auto kind = said(fields, "optimizer.type"); kind && kind->as_string().find("dam") == std::string::npos) {
      kind->fail(fmt::format("optimizer '{}' is not simulated", kind->as_string()), "AdamW");
    }
    if (const auto host = fields.take("activation_checkpointing.cpu_checkpointing"); host && host->as_bool()) {
      host->fail("checkpoints of activations on the host are not simulated", "offload.activations is all of them");
    }
    if (fields.take("activation_checkpointing"))
      draft.puzzle("activation_checkpointing (the training script decides which layers: --set recompute=full)");
    fields.report(draft, {"optimizer.",
                          "scheduler.",
                          "gradient_clipping",
                          "steps_per_print",
                          "wall_clock",
                          "fp16.",
                          "bf16.",
                          "bfloat16.",
                          "prescale",
                          "zero_allow_untested",
                          "tensorboard",
                          "wandb",
                          "csv_monitor",
                          "flops_profiler",
                          "dump_state",
                          "zero_optimization.stage3_gather",
                          "zero_optimization.round_robin",
                          "zero_optimization.contiguous",
                          "zero_optimization.reduce_scatter",
                          "zero_optimization.allgather",
                          "zero_optimization.stage3_prefetch",
                          "zero_optimization.stage3_param_persistence",
                          "zero_optimization.stage3_max_reuse",
                          "comms_logger",
                          "checkpoint",
                          "data_efficiency",
                          "memory_breakdown"});
    return draft;
  }
};

const ImporterRegistry::Registration<DeepSpeed> deep_speed_registration("deepspeed");

}  // namespace
}  // namespace rehearse::sim
