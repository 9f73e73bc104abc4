// ZeRO-2 with a pipeline: a chunk's gradients lie whole from its first backward until the slot behind its last, and only their shard is
// held before and after.
#include <gtest/gtest.h>

#include <algorithm>

#include "../engine/jobs.hpp"
#include "places.hpp"
#include "sim/memory/predicted.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::tests {
namespace {

using workloads::ChunkGradients;
using workloads::Slot;

TEST(WholeGradients, LieFromTheFirstWeightGradientToTheSlotBehindTheLast) {
  const auto forward = [](int chunk) { return std::vector{Slot{Slot::Kind::forward, 0, chunk}}; };
  const auto backward = [](int chunk) { return std::vector{Slot{Slot::Kind::backward, 0, chunk}}; };
  const auto split = [](Slot::Kind kind) { return std::vector{Slot{kind, 0, 0}}; };
  const std::vector<std::vector<Slot>> slots{
      forward(0), forward(1), backward(1), split(Slot::Kind::backward_input), forward(0), split(Slot::Kind::backward_weight), forward(0)};
  constexpr ChunkGradients none = ChunkGradients::absent, whole = ChunkGradients::whole, reduced = ChunkGradients::reduced;
  const std::vector<ChunkGradients> expected{none,  none,     // F0
                                             none,  none,     // F1
                                             none,  whole,    // B1
                                             none,  whole,    // the reduction of chunk 1 runs
                                             none,  reduced,  //
                                             whole, reduced, whole, reduced};
  const std::vector<std::span<const Slot>> together(slots.begin(), slots.end());
  EXPECT_EQ(workloads::chunk_gradients(together, 2), expected);
}

// pp 4 in v equal chunks of a layer each, as many micro-batches as stages: stage 0 runs all forwards and then every chunk's backwards in a
// row. With A the activations of a chunk and micro-batch and G what its gradients have beside their shard, the i-th backward holds
// (4 v - i) A and the gradients of its own chunk, the first of a chunk also those of the chunk before it, which are being reduced; where
// reductions do not overlap, all that have begun. With ZeRO-1 all v are there always.
TEST(WholeGradients, OfAnInterleavedPipelineAreThoseOfOneOrTwoChunks) {
  constexpr int stages = 4;
  for (const int chunks : {2, 4}) {
    for (const std::int64_t sequence : {64, 4096}) {  // gradients decide, or activations
      for (const bool overlap : {false, true}) {
        const std::string extra =
            fmt::format("schedule: interleaved-1f1b\noverlap: {{dp_gradients: {}}}\noptimizer: {{sharding: ", overlap);
        const std::string batch = fmt::format("{{global: 8, micro: 1, sequence: {}}}", sequence);
        const auto job = [&](const char* zero) {
          return small_job(8, fmt::format("{{pp: 4, dp: 2, vpp: {}}}", chunks), batch, extra + zero + "}\n", 8, stages * chunks);
        };
        const sim::Job whole = job("zero1"), sharded = job("zero2");
        const double activations = workloads::layer_activation_bytes(whole.workload, false);
        const double gradients = workloads::layer_program(whole.workload, false).parameters * 4 / 2;  // fp32, half of them another's
        double most = 0;
        for (int i = 0; i < stages * chunks; ++i) {
          const int begun = i / stages + 1, live = overlap ? (i % stages == 0 && begun > 1 ? 2 : 1) : begun;
          most = std::max(most, (stages * chunks - i) * activations + live * gradients);
        }
        const double expected = stages * chunks * activations + chunks * gradients - most;
        const double saved = sim::predicted_memory(whole).ranks[0].tensor_bytes() - sim::predicted_memory(sharded).ranks[0].tensor_bytes();
        EXPECT_NEAR(saved, expected, 1e-9 * expected) << chunks << " chunks, sequence " << sequence << (overlap ? ", overlapped" : "");
      }
    }
  }
}

// The report says that it ran without recomputation (arXiv 2407.21783, section 3.3.2).
TEST(WholeGradients, LetLlama3Fit) {
  setenv("REHEARSE_DATA", REHEARSE_SOURCE_DIR, 1);
  for (const char* name : {"llama3-405b-16k-h100", "llama3-405b-54-days"}) {
    const sim::Job job = sim::load_job({name, {}, {}});
    EXPECT_EQ(job.workload.recompute.kind, workloads::RecomputeKind::none);
    EXPECT_TRUE(sim::predicted_memory(job).fits()) << name;
  }
}

// FSDP's no_sync is for all micro-batches but the last: of a single one nothing waits.
TEST(WholeGradients, OfASingleMicrobatchAreReducedAsTheyAreMade) {
  for (const int microbatches : {1, 2}) {
    const auto peak = [&](const char* sync) {
      return sim::predicted_memory(small_job(4, "{dp: 4}", fmt::format("{{global: {}, micro: 1, sequence: 64}}", 4 * microbatches),
                                             fmt::format("optimizer: {{sharding: zero3{}}}\n", sync), 8, 4))
          .ranks[0]
          .tensor_bytes();
    };
    if (microbatches == 1) {
      EXPECT_EQ(peak(", no_sync: true"), peak(""));
    } else {
      EXPECT_GT(peak(", no_sync: true"), peak(""));
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
