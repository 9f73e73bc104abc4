// What autograd keeps beside the products of a layer: norms inside a product's module, operators around experts, operands in a scan.
#include <gtest/gtest.h>

#include <variant>

#include "places.hpp"
#include "workloads/operators.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/saved_weights.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::tests {
namespace {

using workloads::LayerKind;
using workloads::Workload;

// LLaMA 2 7B, 2048 tokens: states in 16 bits, or with `latent` attention.
Workload job_of_norms(bool latent) {
  Workload w;
  w.model = workloads::read_model(config::Node::load_file(REHEARSE_SOURCE_DIR "/workloads/models/llama2-7b.yaml"), "llama2-7b");
  if (latent) w.model.mla = workloads::MlaSpec{.q_lora = 256, .kv_lora = 128, .qk_nope = 64, .qk_rope = 32, .v = 64};
  w.model.moe = workloads::MoeSpec{.experts = 8, .top_k = 2, .ffn = 512};
  w.batch = {8, 1, 2048};
  return w;
}
constexpr double states_bytes = 2048.0 * 4096 * 2;

double dropped_norms(Workload w, LayerKind kind, bool joined) {
  w.fusions.joined_norms = joined;
  const double all = workloads::layer_activation_bytes(w, false, kind);
  w.recompute = {.kind = workloads::RecomputeKind::selective, .modules = {workloads::RecomputeModule::layernorm}};
  return (all - workloads::layer_activation_bytes(w, false, kind)) / states_bytes;
}

// Both norms of a layer; of those that are a part of a product's module none, which leaves the one before latent attention and the one
// before the router.
TEST(KeptBesideProducts, RecomputedNormsThatAreNoPartOfAProduct) {
  for (const LayerKind kind : {LayerKind::dense, LayerKind::experts}) {
    for (const bool latent : {false, true}) {
      EXPECT_DOUBLE_EQ(dropped_norms(job_of_norms(latent), kind, false), 2);
      EXPECT_DOUBLE_EQ(dropped_norms(job_of_norms(latent), kind, true), (latent ? 1 : 0) + (kind == LayerKind::experts ? 1 : 0));
    }
  }
}

// Nor are they run again.
TEST(KeptBesideProducts, JoinedNormsTakeNoTimeAgain) {
  const auto norms_again = [](bool joined) {
    Workload w = job_of_norms(false);
    w.fusions.joined_norms = joined;
    w.recompute = {.kind = workloads::RecomputeKind::selective, .modules = {workloads::RecomputeModule::layernorm}};
    int norms = 0;
    for (const workloads::Item& item : workloads::layer_program(w, false, LayerKind::dense).recompute) {
      const auto* op = std::get_if<workloads::Operator>(&item);
      norms += op != nullptr && (op->name == "input_norm" || op->name == "post_norm");
    }
    return norms;
  };
  EXPECT_EQ(norms_again(false), 2);
  EXPECT_EQ(norms_again(true), 0);
}

// Two tensors of the width of a pair more, where the activation is not fused and not made again.
TEST(KeptBesideProducts, OperatorsAroundTheActivationOfExperts) {
  Workload w = job_of_norms(false);
  w.model.activation = workloads::Activation::swiglu;
  const double fused = workloads::received_activation_bytes(w, false);
  w.fusions.expert_activation_kept = 2;
  EXPECT_EQ(workloads::received_activation_bytes(w, false), fused);
  w.fusions.activation = false;  // silu's output as well
  EXPECT_EQ(workloads::received_activation_bytes(w, false) - fused, 3 * 512 * 2);
  w.recompute = {.kind = workloads::RecomputeKind::selective, .modules = {workloads::RecomputeModule::moe_act}};
  const double again = workloads::received_activation_bytes(w, false);
  w.fusions.expert_activation_kept = 0;
  EXPECT_EQ(workloads::received_activation_bytes(w, false), again);
}

// What flash attention gave and the copy of it that the projection reads; scores in memory are multiplied in the order that is read.
TEST(KeptBesideProducts, AttentionsOutputInAnotherOrder) {
  Workload w = job_of_norms(false);
  for (const auto attention : {workloads::Attention::flash, workloads::Attention::unfused}) {
    w.attention = attention;
    w.fusions.attention_copied = false;
    const double one = workloads::layer_activation_bytes(w, false, LayerKind::dense);
    w.fusions.attention_copied = true;
    const double both = workloads::layer_activation_bytes(w, false, LayerKind::dense);
    EXPECT_EQ(both - one, attention == workloads::Attention::flash ? states_bytes : 0);
  }
}

// torch.gather saves its input: a copy for each pair, and ep gathered tokens for top_k pairs on a rank; other dispatchers gather none.
TEST(KeptBesideProducts, WhatAnAllGatherSorts) {
  Workload w = job_of_norms(false);
  const double hidden = 4096 * 2;
  for (const auto dispatcher : {workloads::Dispatcher::allgather, workloads::Dispatcher::alltoall}) {
    for (const int ep : {1, 4}) {
      w.experts.dispatcher = dispatcher;
      w.parallel.ep = w.parallel.dp = ep;
      w.fusions.kept_copies = false;
      const double without = workloads::received_activation_bytes(w, false);
      w.fusions.kept_copies = true;
      const double more = workloads::received_activation_bytes(w, false) - without;
      EXPECT_EQ(more, dispatcher == workloads::Dispatcher::allgather ? hidden * (1 + ep / 2.0) : 0);
    }
  }
}

// Of 2048 tokens: two norms of 4 h bytes, and three tensors of SwiGLU; the layer's weights in 16 bits beside them; nothing of a layer that
// is computed again.
TEST(KeptBesideProducts, OperandsOfAScan) {
  const Workload w = job_of_norms(false);
  const workloads::Shard shard = workloads::shard_of(w);
  workloads::MemoryHabits habits;
  const double weights = 1e6;
  const auto beside = [&](bool recomputed) { return workloads::saved_beside(w, habits, shard, LayerKind::dense, recomputed, weights); };
  EXPECT_EQ(beside(false), 0);
  habits.scans_layers = true;
  const double operands = 2048.0 * (8 * 4096 + 3 * 2 * 11008);
  EXPECT_EQ(beside(false), operands);
  EXPECT_EQ(workloads::saved_beside(w, habits, shard, LayerKind::none, false, weights), 2048.0 * 4 * 4096);
  habits.saves_weights = true;
  EXPECT_EQ(beside(false), operands + weights);
  EXPECT_EQ(beside(true), 0);
}

}  // namespace
}  // namespace rehearse::tests
