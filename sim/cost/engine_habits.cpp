#include "sim/cost/engine_habits.hpp"

#include <algorithm>
#include <array>

namespace rehearse::sim {

using config::Dimension;
using config::whole;

const config::Names<Batching>& batching_names() {
  static const config::Names<Batching> names{
      {"continuous", Batching::continuous}, {"prefill-first", Batching::prefill_first}, {"static", Batching::fixed}};
  return names;
}

const config::Names<Overflow>& overflow_names() {
  static const config::Names<Overflow> names{{"recompute", Overflow::recompute}, {"swap", Overflow::swap}, {"reserve", Overflow::reserve}};
  return names;
}

const config::Names<KvLayout>& layout_names() {
  static const config::Names<KvLayout> names{{"nhd", KvLayout::token_major}, {"hnd", KvLayout::head_major}};
  return names;
}

const config::Names<FillingRows>& filling_names() {
  static const config::Names<FillingRows> names{
      {"tokens", FillingRows::as_tokens}, {"alike", FillingRows::alike}, {"none", FillingRows::none}};
  return names;
}

namespace {

const config::Keys<MemoryLimits>& memory_limit_keys() {
  using K = config::Key<MemoryLimits>;
  static const config::Keys<MemoryLimits> keys{
      K("below", &MemoryLimits::below_bytes, config::quantity(Dimension::bytes, 0), "Of a GPU's memory.").required(),
      K("gpus", &MemoryLimits::gpus, list_of(config::text()), "And those with one of these in their names.").otherwise("none"),
      K("sequences", &MemoryLimits::sequences, whole(1, 1'000'000), "As `sequences`.").otherwise("the same"),
      K("tokens", &MemoryLimits::tokens, whole(1, 10'000'000), "As `tokens`.").otherwise("the same"),
  };
  return keys;
}

config::Form<double> rate_of_experts() { return config::number(0.01, 10); }

const config::Keys<ByFormat>& format_keys() {
  using K = config::Key<ByFormat>;
  const config::Form<double> rate = rate_of_experts();
  static const config::Keys<ByFormat> keys{
      K("bf16", &ByFormat::bf16, rate, "Of weights in 16 bits."),
      K("fp8", &ByFormat::fp8, rate, "In 8 bits."),
      K("fp4", &ByFormat::fp4, rate, "In 4 bits, computed in 4."),
      K("fp4_in_8", &ByFormat::fp4_in_8, rate, "In 4 bits, computed in 8."),
      K("fp4_in_16", &ByFormat::fp4_in_16, rate, "In 4 bits, computed in 16."),
  };
  return keys;
}

// One number for all formats, or one for each; those left out are as other products.
config::Form<ByFormat> by_format() {
  const config::Form<double> one = rate_of_experts();
  const config::Form<ByFormat> each = mapping(format_keys());
  const auto read = [=](const config::Node& node) {
    if (node.is_map()) return each.read(node);
    const double all = one.read(node);
    return ByFormat{.bf16 = all, .fp8 = all, .fp4 = all, .fp4_in_8 = all, .fp4_in_16 = all};
  };
  const auto write = [=](const ByFormat& rates) {
    const bool alike = std::ranges::all_of(std::array{rates.fp8, rates.fp4, rates.fp4_in_8, rates.fp4_in_16},
                                           [&](double rate) { return rate == rates.bf16; });
    return alike ? one.write(rates.bf16) : each.write(rates);
  };
  return {config::either({one.shape, each.shape}), read, write};
}

}  // namespace

const config::Keys<EngineHabits>& engine_keys() {
  using Engine = EngineHabits;
  using K = config::Key<Engine>;
  static const config::Keys<Engine> keys{
      K("batching", &Engine::batching, choice(batching_names()), "How a pass is put together."),
      K("chunked_prefill", &Engine::chunked_prefill, config::truth(), "Prompts longer than what is left of a pass are cut."),
      K("sequences", &Engine::sequences, whole(1, 1'000'000), "At most, of one instance at once."),
      K("tokens", &Engine::tokens, whole(1, 10'000'000), "At most, of one pass."),
      K("by_memory", &Engine::by_memory, list_of(mapping(memory_limit_keys())), "Limits by the GPU's memory: the first that it is below.")
          .otherwise("none"),
      K("tokens_of", &Engine::divides_tokens, config::either_word("replica", "instance"),
        "Whose `tokens` are: each attention replica's, or all of them together."),
      K("memory_fraction", &Engine::memory_fraction, config::number(0.01, 1), "Of the GPU's memory that the engine takes."),
      K("cache_share", &Engine::cache_share, config::number(0.01, 1),
        "Of what is left of that beside weights and passes, that the cache gets."),
      K("slot_logit", &Engine::slot_logit_bytes, config::quantity(Dimension::bytes, 0),
        "Of every GPU, for each logit of each of the `sequences`: what a sampler has ready for them.")
          .otherwise("none"),
      K("watermark", &Engine::watermark, config::number(0, 0.5), "Of the cache's pages, left free by whoever is admitted."),
      K("overflow", &Engine::overflow, choice(overflow_names()), "What gives way when the cache has no page left."),
      K("page", &Engine::page, whole(1, 4096), "Tokens of a page of the cache."),
      K("states", &Engine::pages_of_states, config::either_word("bytes", "pages"),
        "What a mixer's state takes of the cache: its bytes, or a page of a layer with attention, which is made as large as it needs."),
      K("layout", &Engine::layout, choice(layout_names()), "Of a page: tokens outside heads (nhd) or heads outside tokens (hnd)."),
      K("request", &Engine::request_s, config::quantity(Dimension::time),
        "Of the server and the tokeniser per request, until it is queued."),
      K("stream", &Engine::stream, whole(1, 100'000), "Tokens that a client is shown at once, behind the first one."),
      K("pass", &Engine::pass_s, config::quantity(Dimension::time), "Of the host per pass."),
      K("sequence", &Engine::sequence_s, config::quantity(Dimension::time), "Of the host per sequence of a pass."),
      K("sort", &Engine::sort_s, config::quantity(Dimension::time),
        "Per logit of a sampler that sorts them all, where loads draw from the likeliest tokens."),
      K("between", &Engine::between_s, config::quantity(Dimension::time), "Of the GPU between two passes, whose kernels no graph holds."),
      K("ahead", &Engine::ahead, config::truth(), "The host prepares a pass while the one before runs."),
      K("captured", &Engine::captured, whole(0, 1'000'000), "Decode passes of up to so many sequences are replayed as graphs."),
      K("capture_step", &Engine::capture_step, whole(1, 100'000), "Captured sizes are 1, 2, 4 and the multiples of this."),
      K("eager_issue", &Engine::eager_issue_s, config::quantity(Dimension::time), "Of the host per kernel where a job switches graphs off.")
          .otherwise("the stack's issue"),
      K("filling", &Engine::filling, choice(filling_names()),
        "How rows that fill a graph up choose experts: each for itself (tokens), all the same (alike), none."),
      K("call", &Engine::call_s, config::quantity(Dimension::time), "Per collective, beside what it takes on the links."),
      K("own_calls", &Engine::own_call_bytes, config::quantity(Dimension::bytes, 0),
        "All-reduces of up to this may go by the engine's own kernels, larger ones by the library.")
          .otherwise("no limit"),
      K("quantise", &Engine::quantise_s, config::quantity(Dimension::time), "Per product in 8 or 4 bits, to make its input narrow."),
      K("widen", &Engine::widen_s, config::quantity(Dimension::time),
        "Per product computed in 16 bits from weights of 8 or 4, beside reading and computing."),
      K("narrow_products", &Engine::narrow_products, config::number(0.1, 10), "Times the GPU's rate of products in 8 and 4 bits."),
      K("prompt_attention", &Engine::prompt_attention, config::number(0.01, 10), "Times the GPU's rate of attention of prompts."),
      K("narrow_attention", &Engine::narrow_attention, config::number(0.1, 10),
        "Times the rate of attention in 16 bits, of prompts whose cache is in 8 or 4 bits."),
      K("expert_share", &Engine::expert_share, by_format(),
        "Times the rate of other products, reached by the kernel for experts where tokens are not dispatched to them; by the format of "
        "their weights."),
      K("expert_read", &Engine::expert_read, by_format(),
        "Times the rate of other products, at which the kernel for experts reads its weights; by their format."),
      K("static_rows", &Engine::static_rows, whole(0, 1024),
        "Rows of a block of the kernel for experts in 8 bits, where it computes as many as there might be: all pairs of a pass and a "
        "block of every expert of the GPU.")
          .otherwise("the pairs that there are"),
      K("prompt_kernel", &Engine::prompt_kernel_s, config::quantity(Dimension::time), "Per kernel of a pass with prompts, before it."),
      K("grouped_heads", &Engine::grouped_heads, whole(1, 1024),
        "Query heads of a key/value head from which on its cache is read once for all of them, on tensor cores."),
      K("block_share", &Engine::block_share, config::number(1e-6, 1),
        "Of the rate at which it reads caches, reached by a sequence with each of its key/value heads; below 1 where contexts are not "
        "split over blocks."),
      K("scalar_share", &Engine::scalar_share, config::number(1e-6, 1),
        "Of the GPU's peak, reached by kernels that read the cache for every query head; needed with grouped_heads above 1.")
          .otherwise("none"),
      K("latent_share", &Engine::latent_share, config::number(1e-6, 1),
        "Of the GPU's peak, reached by the kernel that attends to latent caches while answers are written.")
          .otherwise("as other caches"),
      K("cannot_align", &Engine::cannot_align, list_of(config::text()),
        "Differences between a cache that it sends or takes and its own that it does not make fit.")
          .otherwise("none"),
      K("transfer_start", &Engine::transfer_start_s, config::quantity(Dimension::time), "Of one hand-over of a cache."),
      K("transfer_piece", &Engine::transfer_piece_s, config::quantity(Dimension::time),
        "Of the receiver, per page of a layer's keys or values that is handed over.")
          .otherwise("none"),
      K("transfer_share", &Engine::transfer_share, config::number(1e-3, 1), "Of the line rate that a hand-over reaches."),
  };
  return keys;
}

}  // namespace rehearse::sim
