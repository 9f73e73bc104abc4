// Sequences packed of documents (batch.document_tokens): attention counts what lies inside of them, whatever shares it out, and nothing
// else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "operators_workloads.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads::testing {
namespace {

Workload packed(int sequence, int document, int micro = 2) {
  Workload w = llama(32, 4096, 32, 8, 14336, 128256, sequence, micro);
  w.batch.document = document;
  return w;
}

Operator attention(const Workload& w, Reach reach = Reach::sequence) {
  return find(layer_program(w, false, LayerKind::dense, reach).forward, "core_attention");
}

TEST(Documents, CountAsSequencesOfTheirLength) {
  // Eight documents of 1,024 tokens in a sequence of 8,192 are the attention of eight sequences.
  const BlockProgram of = layer_program(packed(8192, 1024), false), sequences = layer_program(packed(1024, 0, 16), false);
  for (const auto pass : {&BlockProgram::forward, &BlockProgram::backward}) {
    const Operator one = find(of.*pass, "core_attention"), other = find(sequences.*pass, "core_attention");
    EXPECT_EQ(one.flops, other.flops);
    EXPECT_EQ(one.bytes, other.bytes);
    EXPECT_EQ(one.query, other.query);
    EXPECT_EQ(one.key, other.key);
    EXPECT_EQ(one.batch, other.batch);
  }
}

TEST(Documents, ChangeNothingElse) {
  const Workload whole = packed(8192, 0);
  for (const int document : {1, 700, 4096, 8192, 100'000}) {
    const Workload w = packed(8192, document);
    EXPECT_EQ(find(layer_program(w, false).forward, "qkv").flops, find(layer_program(whole, false).forward, "qkv").flops);
    EXPECT_EQ(layer_activation_bytes(w, false), layer_activation_bytes(whole, false));
    EXPECT_DOUBLE_EQ(attention(w).flops / attention(whole).flops, std::min(document, 8192) / 8192.0);
  }
}

TEST(Documents, AreSharedOutOverTheContextGroup) {
  const double alone = attention(packed(8192, 1000)).flops;
  for (const ContextComm how : {ContextComm::all_gather, ContextComm::all_to_all}) {
    Workload w = packed(8192, 1000);
    w.parallel.cp = 8;
    w.parallel.cp_comm = how;
    EXPECT_NEAR(8 * attention(w).flops / alone, 1, 1e-12);
  }
  Workload w = packed(8192, 1000);
  w.parallel.cp = 8;
  for (const Item& item : layer_program(w, false).forward) {
    if (const auto* ring = std::get_if<RingAttention>(&item)) {
      EXPECT_NEAR(8 * 8 * ring->step.flops / alone, 1, 1e-12);  // ranks, steps
    }
  }
}

// Windows inside documents: what is attended to is confined by both.
TEST(Documents, HoldWindows) {
  std::mt19937 random(11);
  for (int i = 0; i < 50; ++i) {
    const int document = std::uniform_int_distribution(1, 8192)(random), window = std::uniform_int_distribution(1, 8192)(random);
    Workload w = packed(8192, document);
    w.model.window = WindowSpec{window, 2};
    EXPECT_DOUBLE_EQ(attention(w, Reach::window).flops / attention(packed(8192, 0)).flops, attended_positions(document, window) / 4096)
        << document << ' ' << window;
  }
}

// The kernel that is not fused computes the whole square and masks.
TEST(Documents, LeaveUnfusedAttentionAsItIs) {
  Workload w = packed(2048, 256), whole = packed(2048, 0);
  w.attention = whole.attention = Attention::unfused;
  EXPECT_EQ(find(layer_program(w, false).forward, "attention_scores").flops,
            find(layer_program(whole, false).forward, "attention_scores").flops);
}

TEST(Documents, ModelFlopsAreWhatTheyHold) {
  const Model model = packed(8192, 0).model;
  for (const bool causal : {false, true}) {
    EXPECT_DOUBLE_EQ(model_flops_per_sequence(model, 8192, causal, 512), 16 * model_flops_per_sequence(model, 512, causal));
    EXPECT_EQ(model_flops_per_sequence(model, 8192, causal, 8192), model_flops_per_sequence(model, 8192, causal));
  }
}

}  // namespace
}  // namespace rehearse::workloads::testing
