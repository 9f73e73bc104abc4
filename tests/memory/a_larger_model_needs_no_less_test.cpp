#include <gtest/gtest.h>

#include "places.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/predicted.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {
namespace {

// Norms behind branches, MTP modules and biases of experts are of no known order; the model without them says what is kept beside them.
// So a model never needs less than one with less in it, whose tensors it has all and more.
TEST(AllocatorPeaks, ALargerModelNeedsNoLess) {
  const auto needed = [](const std::string& model, const std::string& layout) {
    const sim::Job job = job_of("model: {layers: 16, hidden: 4096, heads: 32, vocab: 128256, positions: rope, activation: swiglu, " +
                                model + "}\ncluster: dgx-h100-ndr400\ngpus: 8\nbatch: {global: 32, micro: 2, sequence: 8192}\n" + layout);
    sim::MemoryResult memory = sim::predicted_memory(job);
    sim::AllocatorTrainings(job).add_to(memory);
    std::vector<double> of_stages;
    for (const sim::RankMemory& rank : memory.ranks) {
      EXPECT_TRUE(rank.cache_simulated) << model << "\n" << layout;
      of_stages.push_back(rank.needed_bytes());
    }
    return of_stages;
  };
  const std::string dense = "ffn: 14336", experts = "ffn: 4096, moe: {experts: 8, top_k: 2, ffn: 2048}";
  const std::string megatron = "software: megatron-core\noptimizer: {sharding: zero1}\n";
  for (const auto& [model, layout] :
       {std::pair(dense, megatron + "parallel: {tp: 2, sp: true, pp: 2}\n"),
        std::pair(dense, megatron + "parallel: {tp: 4, sp: true}\nrecompute: selective\n"),
        std::pair(dense, std::string("software: torchtitan\noptimizer: {sharding: zero3}\nrecompute: full\n")),
        std::pair(experts, megatron + "parallel: {ep: 8}\n"),
        std::pair(experts, megatron + "parallel: {ep: 8}\nmoe: {routing: {zipf: 0.7}}\n")}) {
    const std::vector<double> plain = needed(model, layout);
    for (const char* more :
         {", post_norms: true", ", mtp: 1", ", qk_norm: true", ", post_norms: true, mtp: 2, biases: true, qk_norm: true"}) {
      const std::vector<double> larger = needed(model + more, layout);
      ASSERT_EQ(larger.size(), plain.size());
      for (std::size_t stage = 0; stage < plain.size(); ++stage) EXPECT_GE(larger[stage], plain[stage]) << more << "\n" << layout;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
