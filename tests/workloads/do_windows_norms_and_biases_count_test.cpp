// Sliding windows, norms behind the branches and over heads, biases of attention alone: parameters as the models' authors publish them,
// FLOPs against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "config/node.hpp"
#include "operators_workloads.hpp"
#include "tests/config/refusal.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

Model model(const std::string& text) { return read_model(config::Node::load_text(text, "model.yaml"), "m"); }
double parameters(const std::string& text) { return count_parameters(model(text)).total; }

TEST(Biases, OfQueriesKeysAndValuesAreQwens) {
  // Qwen2.5-7B, safetensors metadata of the release: 7,615,616,512.
  EXPECT_EQ(parameters("{layers: 28, hidden: 3584, heads: 28, kv_heads: 4, ffn: 18944, activation: swiglu, vocab: 152064, "
                       "attention_biases: qkv}"),
            7'615'616'512);
}

TEST(Norms, BehindTheBranchesAreGemma2s) {
  // Gemma 2 9B, likewise: 9,241,705,984.
  EXPECT_EQ(parameters("{layers: 42, hidden: 3584, heads: 16, kv_heads: 8, head_dim: 256, ffn: 14336, activation: geglu, vocab: 256000, "
                       "tied_embeddings: true, post_norms: true, window: {tokens: 4096, full_every: 2}}"),
            9'241'705'984);
}

TEST(Norms, OverHeadsAreGemma3s) {
  // Gemma 3 1B, likewise: 999,885,952.
  EXPECT_EQ(parameters("{layers: 26, hidden: 1152, heads: 4, kv_heads: 1, head_dim: 256, ffn: 6912, activation: geglu, vocab: 262144, "
                       "tied_embeddings: true, post_norms: true, qk_norm: true, window: {tokens: 512, full_every: 6}}"),
            999'885'952);
}

// What a GPU holds is what the count says.
TEST(Norms, AndBiasesAreHeldByLayers) {
  Workload w = llama(4, 1024, 16, 4, 2816, 32000, 2048, 1);
  for (const auto biases : {AttentionBiases::none, AttentionBiases::qkv, AttentionBiases::all}) {
    for (const bool norms : {false, true}) {
      w.model.attention_biases = biases;
      w.model.qk_norm = w.model.post_norms = norms;
      EXPECT_EQ(layer_program(w, false).parameters, count_parameters(w.model).layer);
    }
  }
}

TEST(Windows, AllButTheLastOfEveryFewLayersHaveThem) {
  const Model gemma = model(
      "{layers: 62, hidden: 5376, heads: 32, kv_heads: 16, head_dim: 128, ffn: 21504, activation: geglu, "
      "vocab: 262208, window: {tokens: 1024, full_every: 6}}");
  int full = 0;
  for (int layer = 0; layer < gemma.layers; ++layer) full += gemma.windowed(layer) ? 0 : 1;
  EXPECT_EQ(full, 10);  // Gemma 3 27B: 5 local layers to 1 global, beginning with a local one
  EXPECT_TRUE(gemma.windowed(0));
  EXPECT_FALSE(gemma.windowed(5));
  EXPECT_TRUE(model("{layers: 2, hidden: 64, heads: 4, ffn: 64, activation: swiglu, vocab: 1, window: {tokens: 8}}").windowed(1));
}

TEST(Windows, HoldWhatTheDefinitionCounts) {
  // Token i attends to min(i + 1, w) positions. Of the diagonal the areas s^2/2 and w s - w^2/2 hold half: min(w, s)/2 less.
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const int s = std::uniform_int_distribution(1, 5000)(random), w = std::uniform_int_distribution(1, 6000)(random);
    double positions = 0;
    for (int token = 0; token < s; ++token) positions += std::min(token + 1, w);
    EXPECT_NEAR(s * attended_positions(s, w), positions - std::min(w, s) / 2.0, 1e-6) << s << ' ' << w;
  }
}

Workload windowed(int tokens, int sequence) {
  Workload w = llama(32, 4096, 32, 8, 14336, 128256, sequence, 2);
  w.model.window = WindowSpec{tokens, 2};
  return w;
}

TEST(Windows, ShrinkAttentionOfTheirLayersAlone) {
  const Workload w = windowed(1024, 8192);
  const Operator full = find(layer_program(w, false).forward, "core_attention");
  const BlockProgram layer = layer_program(w, false, LayerKind::dense, Reach::window);
  const Operator local = find(layer.forward, "core_attention");
  EXPECT_EQ(local.flops / full.flops, (1024 - 1024.0 * 1024 / (2 * 8192)) / 4096);
  EXPECT_EQ(find(layer.backward, "core_attention").flops, 2.5 * local.flops);
  EXPECT_EQ(find(layer.forward, "qkv").flops, find(layer_program(w, false).forward, "qkv").flops);
  // A window as long as the sequence is none.
  const Workload wide = windowed(8192, 8192);
  EXPECT_EQ(find(layer_program(wide, false, LayerKind::dense, Reach::window).forward, "core_attention").flops, full.flops);
}

TEST(Windows, AreSharedOutOverTheContextGroup) {
  const auto attention = [](const Workload& w) {
    return find(layer_program(w, false, LayerKind::dense, Reach::window).forward, "core_attention").flops;
  };
  const double alone = attention(windowed(1000, 8192));
  for (const ContextComm how : {ContextComm::all_gather, ContextComm::all_to_all}) {
    Workload w = windowed(1000, 8192);
    w.parallel.cp = 8;
    w.parallel.cp_comm = how;
    EXPECT_NEAR(8 * attention(w) / alone, 1, 1e-12);
  }
}

TEST(Windows, ModelFlopsAreTheSumOverLayers) {
  const Workload w = windowed(1024, 8192);
  const double half = model_flops_per_sequence(w.model, 8192, true), all = model_flops_per_sequence(w.model, 8192, false);
  const double local = 1024 - 1024.0 * 1024 / (2 * 8192);
  // 6 s (scores and values, 2 a d) times the positions attended to, in 16 layers of each kind; without "causal half" twice of it.
  EXPECT_DOUBLE_EQ(all - half, 6.0 * 8192 * 2 * 4096 * 16 * (local + 4096));
}

TEST(Windows, OneProgramForEachKindOfLayer) {
  Workload w = windowed(1024, 8192);
  w.parallel.pp = 2;
  for (const StageProgram& stage : stage_programs(w)) {
    const UnitProgram* kinds[2] = {};
    for (const Unit& unit : stage.chunks[0]) {
      if (unit.kind != UnitKind::layer) continue;
      const UnitProgram*& known = kinds[unit.first_layer % 2];
      if (known != nullptr) {
        EXPECT_EQ(unit.program.get(), known);
      }
      known = unit.program.get();
    }
    EXPECT_NE(kinds[0], kinds[1]);
  }
}

TEST(Norms, KeepTheirInputs) {
  // 16 bits of each element: queries and keys (4096 + 1024 wide) and the two outputs of the branches (4096 wide), 2 x 2048 tokens.
  Workload w = llama(32, 4096, 32, 8, 14336, 128256, 2048, 2);
  const double plain = layer_activation_bytes(w, false);
  w.model.qk_norm = true;
  EXPECT_EQ(layer_activation_bytes(w, false) - plain, 2.0 * 4096 * 5120);
  w.model.qk_norm = false;
  w.model.post_norms = true;
  EXPECT_EQ(layer_activation_bytes(w, false) - plain, 2.0 * 4096 * 2 * 4096);
}

TEST(Norms, OverHeadsAreLatentAttentionsOwn) {
  EXPECT_NE(config::refusal_of([] {
              return model(
                  "{layers: 2, hidden: 64, heads: 4, ffn: 64, activation: swiglu, vocab: 1, qk_norm: true, "
                  "mla: {kv_lora: 8, qk_nope: 8, qk_rope: 8, v: 8}}");
            }).find("latent attention has norms of its own"),
            std::string::npos);
}

// Said at the model, not once its operators are made.
TEST(Widths, OfLatentAttentionHaveAnEvenSum) {
  const auto with_values = [](int width) {
    return model("{layers: 2, hidden: 64, heads: 4, ffn: 64, activation: swiglu, vocab: 1, mla: {kv_lora: 8, qk_nope: 8, qk_rope: 8, v: " +
                 std::to_string(width) + "}}");
  };
  EXPECT_EQ(with_values(8).mla->v, 8);
  EXPECT_NE(config::refusal_of([&] { return with_values(9); }).find(":1:"), std::string::npos);
  EXPECT_NE(config::refusal_of([&] { return with_values(9); }).find("qk_nope + qk_rope + v = 25"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::workloads::testing
