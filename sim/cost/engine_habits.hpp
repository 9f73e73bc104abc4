// What an inference engine does where a job does not say otherwise: the `serving` section of platforms/software/*.yaml. One file per
// generation of an engine; nothing in it belongs to a model or a GPU.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/keys.hpp"

namespace rehearse::sim {

// How a pass is put together: decoding sequences first, then chunks of prompts (continuous); prompts before all decoding, unmixed
// (prefill_first); all prompts of a batch, then its decoding until the last one ends (fixed).
enum class Batching { continuous, prefill_first, fixed };
// What gives way when the cache has no page for the next token: the youngest sequence, whose tokens are computed again later; the youngest,
// whose pages go to the host's memory and come back; nobody, since only what fits to its last token is admitted.
enum class Overflow { recompute, swap, reserve };
enum class KvLayout { token_major, head_major };  // NHD, HND
// How the rows that fill a replayed pass up to its captured size choose experts: each for itself, as a token does; all the same ones, being
// copies of one request; none, since the router leaves them out.
enum class FillingRows { as_tokens, alike, none };

[[nodiscard]] const config::Names<Batching>& batching_names();
[[nodiscard]] const config::Names<Overflow>& overflow_names();
[[nodiscard]] const config::Names<KvLayout>& layout_names();
[[nodiscard]] const config::Names<FillingRows>& filling_names();

// Limits of an engine on GPUs with less memory than others, and on those by these names.
struct MemoryLimits {
  double below_bytes = 0;
  std::vector<std::string> gpus;  // in their names
  int sequences = 0, tokens = 0;  // 0: as on others
};

// A rate of an engine's kernel for experts, by the format of their weights; those of 4 bits may be computed in 8 or 16.
struct ByFormat {
  double bf16 = 1, fp8 = 1, fp4 = 1, fp4_in_8 = 1, fp4_in_16 = 1;
};

struct EngineHabits {
  Batching batching = Batching::continuous;
  bool chunked_prefill = true;
  int sequences = 256;                  // at most, of one instance at once
  int tokens = 8192;                    // at most, of one pass
  std::vector<MemoryLimits> by_memory;  // the first that a GPU is one of has its limits
  bool divides_tokens = false;          // `tokens` are of all attention replicas together, each has its share
  double memory_fraction = 0.9;
  double slot_logit_bytes = 0;  // of a GPU, for every logit of every sequence that it may hold: buffers that a sampler has ready
  double cache_share = 1;       // of what is left of it beside weights, activations and context, that the cache gets
  double watermark = 0;         // of the cache's pages that whoever is admitted leaves free
  Overflow overflow = Overflow::recompute;
  int page = 16;                 // tokens
  bool pages_of_states = false;  // a mixer's state takes a page of a layer with attention, which is as large as it needs; else its bytes
  KvLayout layout = KvLayout::token_major;

  double request_s = 0;   // from a client's request until the engine's queue, and back with its first token: server, tokeniser
  int stream = 1;         // tokens that a client is shown at once; the first one alone
  double pass_s = 0;      // of the host per pass: scheduling, preparing, sampling
  double sequence_s = 0;  // of the host per sequence in it, of one attention replica
  double sort_s = 0;      // of the GPU per logit of a sampler that sorts them all; 0 where the likeliest token is taken
  double between_s = 0;   // of the GPU between two passes: kernels that sample and put inputs together, outside of any graph
  bool ahead = true;      // the host prepares a pass while the one before runs
  int captured = 512;     // decode passes of up to so many sequences are replayed as graphs; 0: none
  int capture_step = 8;   // the captured sizes: 1, 2, 4 and the multiples of this
  FillingRows filling = FillingRows::as_tokens;
  bool eager = false;                   // a job switched graphs off, and with them compiling
  std::optional<double> eager_issue_s;  // of the host per kernel then; nothing: the stack's `issue`

  double call_s = 0;  // per collective, beside what it takes on the links: ranks wait for one another
  // All-reduces of up to so many bytes may go by the engine's own kernels, larger ones go by the library.
  double own_call_bytes = std::numeric_limits<double>::infinity();
  double quantise_s = 0;        // per product in 8 or 4 bits: the kernel that makes its input narrow, where that is not fused
  double widen_s = 0;           // per product in 16 bits of weights of 8 or 4: what its kernel takes beside reading and computing
  double narrow_products = 1;   // times the GPU's rate of products in 8 and 4 bits
  double prompt_attention = 1;  // times the GPU's rate of attention of prompts
  double narrow_attention = 1;  // times the rate of attention in 16 bits, of prompts with a cache in 8 or 4 bits
  ByFormat expert_share;  // times the rate of other products that its kernel for experts reaches, where tokens are not dispatched to them
  ByFormat expert_read;   // times the rate at which other products read weights
  // Of a block of the kernel for experts in 8 bits that computes as many as there might be, since the host does not know: all pairs of a
  // pass and one block of every expert of the GPU. 0: it computes the pairs that there are.
  int static_rows = 0;
  double prompt_kernel_s = 0;  // per kernel of a pass with prompts, which is no graph: what the GPU idles before it
  int grouped_heads = 1;       // query heads of a key/value head from which on a kernel reads the cache once for all of them; below it
                               // every query head reads for itself, without tensor cores
  double block_share = 1;      // of the rate at which it reads caches, what a sequence reaches with a key/value head; 1: all of it
  double scalar_share = 0;     // of the GPU's peak that those kernels reach; needed where grouped_heads is above 1
  double latent_share = 0;     // of the GPU's peak, what the kernel reaches that attends to latent caches; 0: what other caches' does
  std::vector<std::string> cannot_align;  // differences between two caches that it does not make fit (names of sim/serving/alignments)
  double transfer_start_s = 0;            // of one hand-over of a cache
  double transfer_piece_s =
      0;  // of each piece of it that lies together, which the receiver asks for: a page of a layer's keys, or of its values
  double transfer_share = 1;  // of the line rate that it reaches
};

[[nodiscard]] const config::Keys<EngineHabits>& engine_keys();

}  // namespace rehearse::sim
