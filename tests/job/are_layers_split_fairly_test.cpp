#include <gtest/gtest.h>

#include <random>

#include "workloads/plan.hpp"

namespace rehearse::workloads {
namespace {

Workload pipeline(int layers, int pp, int vpp = 1, std::vector<int> split = {}) {
  Workload workload;
  workload.model.layers = layers;
  workload.model.vocab = 100;
  workload.parallel.pp = pp;
  workload.parallel.vpp = vpp;
  workload.parallel.layers_per_stage = std::move(split);
  return workload;
}

std::vector<int> layers_of_stages(const Workload& workload) {
  std::vector<int> out;
  for (const auto& stage : split_layers(workload)) {
    out.push_back(0);
    for (const Chunk& chunk : stage) out.back() += chunk.layers;
  }
  return out;
}

// Llama 3 405B, 126 layers on 16 stages: 14 stages of 8, the first and the last one of 7 (arXiv 2407.21783, section 3.3.2).
TEST(AreLayersSplitFairly, the_remainder_goes_to_the_middle) {
  EXPECT_EQ(layers_of_stages(pipeline(126, 16)), (std::vector<int>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}));
  EXPECT_EQ(layers_of_stages(pipeline(9, 4)), (std::vector<int>{2, 3, 2, 2}));
  EXPECT_EQ(layers_of_stages(pipeline(80, 8)), std::vector<int>(8, 10));
}

// Entry k*pp + s is chunk k of stage s: with 2 stages and 2 chunks the model runs through stages 0, 1, 0, 1.
TEST(AreLayersSplitFairly, chunks_run_through_the_stages_in_model_order) {
  const auto split = split_layers(pipeline(8, 2, 2, {1, 3, 3, 1}));
  ASSERT_EQ(split.size(), 2U);
  EXPECT_EQ(split[0][0].first_layer, 0);
  EXPECT_EQ(split[1][0].first_layer, 1);
  EXPECT_EQ(split[0][1].first_layer, 4);
  EXPECT_EQ(split[1][1].first_layer, 7);
  EXPECT_EQ(split[1][1].layers, 1);
}

TEST(AreLayersSplitFairly, the_ends_hold_embedding_and_head) {
  const auto split = split_layers(pipeline(8, 2, 2));
  EXPECT_TRUE(split[0][0].embedding);
  EXPECT_TRUE(split[1][1].head);
  EXPECT_FALSE(split[0][1].embedding || split[0][1].head || split[1][0].embedding || split[1][0].head);
  Workload block = pipeline(1, 1);
  block.model.vocab = 0;
  EXPECT_FALSE(split_layers(block)[0][0].embedding || split_layers(block)[0][0].head);
}

// Whatever the shape: every layer once, in order, and no two chunks differ by more than one layer.
TEST(AreLayersSplitFairly, every_layer_once) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const int pp = 1 + static_cast<int>(random() % 20);
    const int vpp = 1 + static_cast<int>(random() % 4);
    const int layers = pp * vpp + static_cast<int>(random() % 100);
    const auto split = split_layers(pipeline(layers, pp, vpp));
    int next = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(vpp); ++k) {
      for (const auto& stage : split) {
        EXPECT_EQ(stage[k].first_layer, next);
        EXPECT_GE(stage[k].layers, layers / (pp * vpp));
        EXPECT_LE(stage[k].layers, layers / (pp * vpp) + 1);
        next += stage[k].layers;
      }
    }
    EXPECT_EQ(next, layers);
  }
}

TEST(AreLayersSplitFairly, sizes_and_names_of_formats) {
  EXPECT_EQ(bytes_of(DType::fp32), 4);
  EXPECT_EQ(bytes_of(DType::bf16), 2);
  EXPECT_EQ(bytes_of(DType::fp16), 2);
  EXPECT_EQ(bytes_of(DType::fp8), 1);
  EXPECT_EQ(bytes_of(DType::fp4), 0.5);
  EXPECT_EQ(name_of(DType::fp4), "fp4");
  EXPECT_EQ(name_of(DType::bf16), "bf16");
}

}  // namespace
}  // namespace rehearse::workloads
