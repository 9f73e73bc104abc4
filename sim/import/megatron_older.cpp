// Arguments as they were before Megatron-LM's core (2021, 2022), and those that Megatron-DeepSpeed has beside them.
#include <fmt/format.h>

#include "sim/import/megatron_arguments.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr std::pair<const char*, const char*> older_names[] = {{"activations-checkpoint-method", "recompute-method"},
                                                               {"activations-checkpoint-num-layers", "recompute-num-layers"},
                                                               {"checkpoint-num-layers", "recompute-num-layers"},
                                                               {"distribute-checkpointed-activations", "distribute-saved-activations"},
                                                               {"cpu-optimizer", "optimizer-cpu-offload"},
                                                               {"ds-sequence-parallel-size", "context-parallel-size"},
                                                               {"pad-vocab-size-to", "padded-vocab-size"},
                                                               {"use-flash-attn-triton", "use-flash-attn"},
                                                               {"use-flash-attn-v1", "use-flash-attn"},
                                                               {"use-flash-attn-v2", "use-flash-attn"}};

// Layers recomputed in full, by the two names that the switch had.
bool read_checkpoints(MegatronArguments& arguments, Draft& draft) {
  const bool method = arguments.has("activations-checkpoint-method");
  if (!arguments.flag("checkpoint-activations") && !method) return false;
  if (arguments.has("recompute-granularity")) return true;
  arguments.add("recompute-granularity", Node::scalar("full"));
  draft.infer(fmt::format("recompute: what {} asks for", method ? "activations-checkpoint-method" : "checkpoint-activations"));
  return true;
}

// Stages by parameters, with embedding and loss as a layer each.
void read_partition(MegatronArguments& arguments, Draft& draft) {
  const auto method = arguments.take("pp-partition-method");
  if (!method) return;
  if (method->as_string() != "type:transformer|embedding") return draft.puzzle("pp-partition-method");
  arguments.add("account-for-embedding-in-pipeline-split", Node::scalar(""));
  arguments.add("account-for-loss-in-pipeline-split", Node::scalar(""));
}

// DeepSpeed has its own say in what is sharded.
void read_engine(MegatronArguments& arguments, Draft& draft) {
  draft.set("software", "deepspeed-3d");
  draft.infer("software: deepspeed-3d, since --deepspeed is given");
  static_cast<void>(arguments.flag("no-pipeline-parallel"));  // which has one stage
  const auto given = arguments.take("zero-stage");
  const double number = given ? given->as_number(0, 3) : 1;  // DeepSpeed takes 1.0 as well
  const auto stage = static_cast<std::int64_t>(number);
  if (static_cast<double>(stage) != number) given->fail("--zero-stage must be a whole number");
  if (!given) draft.infer("optimizer.sharding: zero1, the default of --zero-stage; the file of --deepspeed_config may say otherwise");
  const bool own = stage == 0 && arguments.has("bf16");
  if (own) draft.infer("optimizer.sharding: zero1, which DeepSpeed's optimizer for bf16 does at stage 0");
  draft.set("optimizer.sharding", stage == 0 && !own ? "none" : fmt::format("zero{}", own ? 1 : stage));
  if (stage == 3) draft.set("overlap.dp_parameters", "true");
}

}  // namespace

void read_older_megatron(MegatronArguments& arguments, Draft& draft) {
  const bool ulysses = arguments.has("ds-sequence-parallel-size");
  bool older = read_checkpoints(arguments, draft);
  for (const auto& [before, now] : older_names) arguments.rename(before, now);
  if (ulysses && arguments.has("context-parallel-size") && !arguments.has("cp-comm-type")) {
    arguments.add("cp-comm-type", Node::scalar("a2a"));
    draft.infer("parallel.cp_comm: all-to-all, DeepSpeed's sequence parallelism");
  }
  read_partition(arguments, draft);
  if (arguments.flag("deepspeed")) {
    read_engine(arguments, draft);
  } else if (older) {
    draft.set("software", "megatron-2021");
    draft.infer("software: megatron-2021, since arguments are as they were then");
  } else {
    return;
  }
  // Before Transformer Engine.
  if (!arguments.has("transformer-impl")) arguments.add("transformer-impl", Node::scalar("local"));
}

}  // namespace rehearse::sim
