// MemFine's claims (arXiv 2511.21431) on workloads/jobs/memfine-64g.yaml, by the model alone: nothing of them is put in.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "jobs.hpp"
#include "places.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/compare/methods.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/memory/tune_chunks.hpp"

namespace rehearse::tests {
namespace {

sim::Job job_of(const sim::Method& method) {
  return sim::tuned(sim::load_job({REHEARSE_SOURCE_DIR "/workloads/jobs/memfine-64g.yaml", method.sets, {}}));
}

double highest_activations(const sim::StepResult& result) {
  double most = 0;
  for (const sim::RankMemory& rank : result.memory.ranks) most = std::max(most, sim::activation_bytes(rank));
  return most;
}

TEST(MemFine, TunedChunksFitWhereFullRecomputationRunsOutOfMemoryAndAreFaster) {
  const auto methods = sim::parse_methods("full-recompute,chunks=8,chunks=auto");
  const sim::StepResult full = sim::simulate_in_child(job_of(methods[0]));
  const sim::StepResult eight = sim::simulate_in_child(job_of(methods[1]));
  const sim::StepResult tuned = sim::simulate_in_child(job_of(methods[2]));
  EXPECT_FALSE(full.memory.fits());
  EXPECT_TRUE(eight.memory.fits());
  EXPECT_TRUE(tuned.memory.fits());
  // The paper's 48 %: here 55 % when written down. Roughly half.
  EXPECT_LT(highest_activations(tuned), 0.6 * highest_activations(full));
  EXPECT_GT(tuned.tokens_per_s, full.tokens_per_s);
  EXPECT_GE(tuned.tokens_per_s, eight.tokens_per_s);
  // The same routing for all.
  EXPECT_EQ(full.experts->rank, tuned.experts->rank);
  EXPECT_EQ(full.experts->tokens, tuned.experts->tokens);
  EXPECT_GT(full.experts->tokens, 5 * full.experts->mean_tokens);
}

// Brute force: no layer could do with the next smaller threshold, unless it has the largest because none fits.
TEST(MemFine, TuningTakesTheSmallestThresholdThatFits) {
  const sim::Job tuned = job_of(sim::parse_methods("chunks=auto").front());
  const std::vector<int>& thresholds = tuned.workload.experts.thresholds;
  const std::vector<bool> fit = sim::expert_layers_that_fit(tuned);
  std::map<int, int> used;
  for (int layer = 0; layer < tuned.workload.model.layers; ++layer) {
    if (!tuned.workload.model.has_experts(layer)) continue;
    const int chunks = tuned.workload.experts.chunks_of(layer);
    ++used[chunks];
    EXPECT_TRUE(fit[static_cast<std::size_t>(layer)] || chunks == thresholds.back()) << layer;
    if (chunks == thresholds.front()) continue;
    sim::Job fewer = tuned;
    fewer.workload.experts.layer_chunks[static_cast<std::size_t>(layer)] = *std::prev(std::ranges::find(thresholds, chunks));
    EXPECT_FALSE(sim::expert_layers_that_fit(fewer)[static_cast<std::size_t>(layer)]) << layer;
  }
  EXPECT_GE(used.size(), 2U);  // stages and layers differ
}

TEST(MemFine, MoreChunksNeedLessMemoryAndFewChunksCostLittle) {
  double last = INFINITY;
  for (const int chunks : {1, 2, 4, 8}) {
    const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 16, micro: 2, sequence: 4096}",
                                    fmt::format("moe: {{chunks: {}, chunk_recompute: true}}\n", chunks), 2);
    const double activations = highest_activations(sim::predict(job));
    EXPECT_LT(activations, last) << chunks;
    last = activations;
  }
}

// What a rank's experts need beside the rest of the layer is linear in the tokens they get: by hand for one layer, one micro-batch, gates.
TEST(MemFine, TokensReceivedCostWhatTheirTensorsCost) {
  const auto peak = [](int tokens_of_hot) {
    std::string rows;
    for (int e = 0; e < 16; ++e) rows += fmt::format("[0, 0, 0, {}, {}],", e, e < 2 ? tokens_of_hot : 1000);
    rows.pop_back();
    const sim::Job job = expert_job(8, "{dp: 8, ep: 8}", "{global: 8, micro: 1, sequence: 4096}",
                                    fmt::format("moe: {{routing: {{counts: [{}]}}}}\n", rows), 1);
    const sim::StepResult result = sim::predict(job);
    return std::pair{result.memory.fullest()->peak_bytes(), result.experts->tokens};
  };
  const auto [few, few_tokens] = peak(1000);
  const auto [many, many_tokens] = peak(2500);
  // Kept: h + 3 g. Backward's gradients around the activation: 3 g, and the activation again. 16 bits.
  const double h = 2048, g = 2048;
  EXPECT_NEAR(many - few, (many_tokens - few_tokens) * 2 * (h + 3 * g + 4 * g), 1e-6 * many);
}

}  // namespace
}  // namespace rehearse::tests
