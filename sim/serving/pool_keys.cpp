#include "sim/serving/pool_keys.hpp"

#include "workloads/names.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::Key;
using config::Keys;
using config::Shape;
using config::truth;
using config::whole;
using workloads::DType;
using workloads::ServingPrecision;

constexpr int most_pool_ranks = 100'000, most_pool_tokens = 100'000'000;

// 4-bit integers are as wide as 4-bit floats, and as weights alone computed in 16 bits just so.
const config::Names<DType>& number_formats() {
  static const config::Names<DType> names{{"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp8", DType::fp8},  {"int8", DType::fp8},
                                          {"fp4", DType::fp4},   {"int4", DType::fp4},  {"fp32", DType::fp32}};
  return names;
}

const config::Names<DType>& state_formats() {
  static const config::Names<DType> names{{"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp32", DType::fp32}};
  return names;
}

const config::Names<DType>& attention_formats() {
  static const config::Names<DType> names{{"bf16", DType::bf16}, {"fp16", DType::fp16}, {"fp8", DType::fp8},
                                          {"int8", DType::fp8},  {"fp4", DType::fp4},   {"int4", DType::fp4}};
  return names;
}

const Keys<Parallelism>& parallelism_keys() {
  using K = Key<Parallelism>;
  static const Keys<Parallelism> keys{
      K("tp", &Parallelism::tp, whole(1, most_pool_ranks), "Tensor parallelism."),
      K("pp", &Parallelism::pp, whole(1, most_pool_ranks), "Pipeline stages."),
      K("dp", &Parallelism::dp, whole(1, most_pool_ranks), "Attention replicas, which run their passes in step."),
      K("ep", &Parallelism::ep, whole(1, most_pool_ranks), "Ranks among which the experts are spread.").otherwise("1"),
  };
  return keys;
}

const Keys<PoolLimits>& limit_keys() {
  using K = Key<PoolLimits>;
  static const Keys<PoolLimits> keys{
      K("sequences", &PoolLimits::sequences, whole(1, most_pool_tokens), "At once.").otherwise("the software's"),
      K("tokens", &PoolLimits::tokens, whole(1, most_pool_tokens), "Of one pass.").otherwise("the software's"),
  };
  return keys;
}

const Keys<PoolDocument>& cache_keys() {
  using K = Key<PoolDocument>;
  static const Keys<PoolDocument> keys{
      K("page", &PoolDocument::page, whole(1, 4096), "Tokens of a page."),
      K("layout", &PoolDocument::layout, choice(layout_names()), "Of a page."),
  };
  return keys;
}

const Keys<ExpertHabits>& expert_keys() {
  using K = Key<ExpertHabits>;
  static const Keys<ExpertHabits> keys{
      K("dispatcher", &ExpertHabits::dispatcher, choice(workloads::dispatchers), "How tokens reach their experts."),
      K("redundant", &ExpertHabits::redundant, whole(0, 100'000), "Copies of experts beside the model's own; they even out the ranks."),
      K("overlap", &ExpertHabits::overlap, truth(), "Two half-batches: the exchange of one beside the computation of the other."),
  };
  return keys;
}

// Found once the pool is read; its keys are those of the part.
config::Form<config::Node> part() {
  const Shape any{.kind = Shape::Kind::mapping, .keys = {{"*", {}, false, "", "A key of the part."}}};
  return {.shape = config::either({{.kind = Shape::Kind::text}, any}),
          .read = [](const config::Node& node) { return node; },
          .write = [](const config::Node& node) { return node; }};
}

const Keys<SpeculationDocument>& speculation_keys() {
  constexpr int most_tried = 64;
  using K = Key<SpeculationDocument>;
  static const Keys<SpeculationDocument> keys{
      K("tokens", &SpeculationDocument::tokens, whole(1, most_tried), "Tried in every pass beside the next one.").required(),
      K("acceptance", &SpeculationDocument::acceptance, config::number(0, 1), "Chance that one is taken where all before it were.")
          .required(),
      K("draft", &SpeculationDocument::draft, part(), "A model that proposes them, a token a pass: a name, a path or the content.")
          .otherwise("they cost nothing"),
  };
  return keys;
}

}  // namespace

const Keys<ServingPrecision>& serving_precision_keys() {
  using K = Key<ServingPrecision>;
  static const Keys<ServingPrecision> keys{
      K("compute", &ServingPrecision::compute, choice(number_formats()), "Of the products; a GPU without it computes in bf16."),
      K("weights", &ServingPrecision::weights, choice(number_formats()), "As stored."),
      K("kv", &ServingPrecision::kv, choice(number_formats()), "Of the cache."),
      K("state", &ServingPrecision::state, choice(state_formats()), "Of the state that a mixer keeps of a sequence."),
      K("attention", &ServingPrecision::attention, choice(attention_formats()), "Of attention's weights and products.")
          .otherwise("the others'; 16 bits in 4-bit checkpoints with experts"),
  };
  return keys;
}

const config::Names<Role>& role_names() {
  static const config::Names<Role> names{{"both", Role::both}, {"prefill", Role::prefill}, {"decode", Role::decode}};
  return names;
}

const Keys<PoolDocument>& pool_keys() {
  using K = Key<PoolDocument>;
  using Pool = PoolDocument;
  static const Keys<PoolDocument> keys{
      K("role", &Pool::role, choice(role_names()), "What its instances do.").required(),
      K("part", &Pool::part, config::text(), "Of the cluster, where it has parts.").otherwise("the only one"),
      K("instances", &Pool::instances, whole(1, most_pool_ranks), "Equal ones."),
      K("place", &Pool::spread, config::either_word("pack", "spread"),
        "pack: instances in order, several on a node; spread: each on nodes of its own."),
      K("parallel", &Pool::parallel, mapping(parallelism_keys()), "Of one instance; it takes tp*pp*dp GPUs."),
      K("precision", &Pool::precision, mapping(serving_precision_keys()), "Number formats."),
      K("software", &Pool::software, part(), "The engine: a name, a path or the content.").otherwise("the job's"),
      K("batching", &Pool::batching, choice(batching_names()), "How a pass is put together.").otherwise("the software's"),
      K("chunked_prefill", &Pool::chunked_prefill, truth(), "Prompts may be cut.").otherwise("the software's"),
      K("graphs", &Pool::graphs, truth(), "Decode passes are replayed as CUDA graphs, up to the engine's sizes.")
          .otherwise("the software's"),
      K("limits", &Pool::limits, mapping(limit_keys()), "Of one attention replica."),
      K("memory_fraction", &Pool::memory_fraction, config::number(0.01, 1), "Of the GPU's memory that the engine takes.")
          .otherwise("the software's"),
      K("kv_tokens", &Pool::kv_tokens, whole(1, 2'000'000'000), "Tokens that an attention replica's cache holds.")
          .otherwise("what the memory leaves"),
      K(
          "kv", cache_keys().shape(), [](const config::Node& node, Pool& pool) { cache_keys().read(node, pool); },
          [](const Pool& pool) { return cache_keys().write(pool); }, "Pages of the cache."),
      K("overflow", &Pool::overflow, choice(overflow_names()), "What gives way when pages run out.").otherwise("the software's"),
      K("prefix_cache", &Pool::prefix_cache, truth(),
        "Prompts that begin as earlier ones did find their caches there; needs a trace with block hashes."),
      K("moe", &Pool::moe, mapping(expert_keys()), "Models with experts only."),
      K("speculative", &Pool::speculative, mapping(speculation_keys()), "Speculative decoding.").otherwise("none"),
      K("longest_prompt", &Pool::longest_prompt, whole(1, most_pool_tokens),
        "Behind the router by-length: tokens of the longest prompt that it takes, of those too long for pools with a smaller one.")
          .otherwise("any"),
      K("price", &Pool::price_per_s, config::quantity(Dimension::rate), "Of one GPU, in any currency."),
  };
  return keys;
}

const config::Names<TransferMode>& transfer_mode_names() {
  static const config::Names<TransferMode> names{
      {"after-prefill", TransferMode::after_prefill}, {"chunkwise", TransferMode::chunkwise}, {"layerwise", TransferMode::layerwise}};
  return names;
}

const Keys<TransferSpec>& transfer_keys() {
  using K = Key<TransferSpec>;
  static const config::Names<TransferPath> paths{{"gpu-direct", TransferPath::gpu_direct}, {"host-staged", TransferPath::host_staged}};
  static const Keys<TransferSpec> keys{
      K("mode", &TransferSpec::mode, choice(transfer_mode_names()),
        "When the cache is sent: behind the whole prompt, every chunk when it is computed, or every layer of a chunk."),
      K("path", &TransferSpec::path, choice(paths), "From GPU to GPU, or through the memory of both hosts."),
      K("align", &TransferSpec::align, choice(align_names()),
        "Where a cache is made to fit, as far as it can be done there: where it takes the least time, or on one side."),
      K("reserve", &TransferSpec::reserves_first, config::either_word("on-pull", "before-prefill"),
        "When pages are taken on the decoding side."),
      K("first_token", &TransferSpec::prefill_answers_first, config::either_word("decode", "prefill"), "Who shows it to the client."),
      K("timeout", &TransferSpec::timeout_s, config::quantity(Dimension::time), "With faults: a hand-over that takes longer is given up."),
  };
  return keys;
}

const Keys<Promise>& promise_keys() {
  constexpr double shortest_promise_s = 1e-6;  // 0 stands for none
  using K = Key<Promise>;
  static const Keys<Promise> keys{
      K("ttft", &Promise::ttft_s, config::quantity(Dimension::time, shortest_promise_s), "Time to first token.").otherwise("none"),
      K("tpot", &Promise::tpot_s, config::quantity(Dimension::time, shortest_promise_s), "Time per output token.").otherwise("none"),
      K("percentile", &Promise::percentile, config::number(0.01, 1), "Share of the requests for which it holds."),
      K("of", &Promise::both, config::either_word("each", "both"), "For each of the two, or for both in the same request."),
  };
  return keys;
}

}  // namespace rehearse::sim
