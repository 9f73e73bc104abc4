// Layers with a mixer in the place of attention, and layers of one block each: parameters as published, what is computed, exchanged and
// kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "config/node.hpp"
#include "operators_workloads.hpp"
#include "places.hpp"
#include "tests/config/refusal.hpp"
#include "workloads/mixer.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads::testing {
namespace {

using Names = std::vector<std::string>;

Model hybrid_of(const std::string& text) { return read_model(config::Node::load_text(text, "model.yaml"), "m"); }

const std::string dense_base = "layers: 8, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: relu2, vocab: 32000";
const std::string mamba = "mixer: {kind: mamba2, heads: 32, head_dim: 64, groups: 8, state: 128}";
const std::string delta = "mixer: {kind: gated_delta, heads: 16, head_dim: 128, groups: 8, state: 64}";

Workload hybrid(const std::string& more, int tp = 1, int cp = 1) {
  Workload w = llama(8, 1024, 16, 4, 4096, 32000, 2048, 1);
  w.model = hybrid_of("{" + dense_base + ", " + more + "}");
  w.parallel.tp = tp;
  w.parallel.sp = tp > 1;
  w.parallel.cp = cp;
  return w;
}

double parameters_of_all(const Workload& w) {
  double sum = 0;
  for (int layer = 0; layer < w.model.layers; ++layer) {
    const LayerShape shape = shape_of(w.model, layer);
    sum += layer_program(w, false, shape.kind, shape.reach).parameters;
  }
  return sum;
}

double flops_of(const std::vector<Operator>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0, [](double sum, const Operator& op) { return sum + op.flops; });
}

// Table 1 of arXiv 2504.03624, to the billion.
TEST(Mixers, AreAsLargeAsPublished) {
  const auto billions = [](const std::string& name) {
    const std::string file = std::string(REHEARSE_SOURCE_DIR) + "/workloads/models/" + name + ".yaml";
    return count_parameters(read_model(config::Node::load_file(file), name));
  };
  EXPECT_NEAR(billions("nemotron-h-8b").total, 8.1e9, 0.05e9);
  EXPECT_NEAR(billions("nemotron-h-56b").total, 56e9, 0.5e9);
  EXPECT_EQ(billions("nemotron3-nano-30b-a3b").total, 31'577'937'344);
  EXPECT_NEAR(billions("nemotron3-nano-30b-a3b").active, 3.6e9, 0.05e9);
  EXPECT_EQ(billions("nemotron3-super-120b-a12b").total, 120'668'687'360);
  EXPECT_NEAR(billions("nemotron3-super-120b-a12b").active, 12.7e9, 0.1e9);
  constexpr double gates = 48 * 2048;  // of shared experts, which are not counted
  EXPECT_EQ(billions("qwen3-next-80b-a3b").total + gates, 79'674'391'296);
  EXPECT_EQ(billions("qwen3-next-80b-a3b").active + gates, 3'874'929'408);
}

// What GPUs hold is what the count says, also in tp shares, of which each has norms of its own: two of the width, and of a delta rule one
// of a head.
TEST(Mixers, AreHeldByLayers) {
  const std::string every = "mixer: {kind: mamba2, heads: 32, head_dim: 64, groups: 8, state: 128, attention_every: 4}";
  for (const std::string& more :
       {mamba, delta, mamba + ", pattern: M-M*-M-*", delta + ", attention_gate: true, pattern: MM*-M-M*", every}) {
    const Workload w = hybrid(more);
    const ParameterCount count = count_parameters(w.model);
    EXPECT_DOUBLE_EQ(parameters_of_all(w) + count.embedding + count.final_norm + count.head, count.total) << more;
    double norms = (w.model.pattern.empty() ? 16 : 8) * 1024.0;
    for (int layer = 0; layer < 8; ++layer) norms += w.model.has_mixer(layer) && w.model.mixer->kind == "gated_delta" ? 128 : 0;
    EXPECT_DOUBLE_EQ(4 * parameters_of_all(hybrid(more, 4)), parameters_of_all(w) + 3 * norms) << more;
  }
}

// By hand, of Mamba-2: z and x of 2,048, B and C of 8 x 128 each, dt of 32, in and back out of 1,024; a convolution of four taps and a bias
// over x, B and C, three numbers a head, the weights of the gated norm and of the layer's own.
TEST(Mixers, HaveTheseParameters) {
  const double channels = 2048 + 2 * 8 * 128, columns = channels + 2048 + 32;
  EXPECT_EQ(layer_program(hybrid(mamba), false, LayerKind::none, Reach::state).parameters,
            1024 * columns + 2048 * 1024 + 5 * channels + 3 * 32 + 2048 + 1024);
  // Of a delta rule values and gate of 2,048, keys and queries of 512, two numbers a head; no bias, a norm of one head.
  const double delta_channels = 2048 + 2 * 512, delta_columns = delta_channels + 2048 + 2 * 16;
  EXPECT_EQ(layer_program(hybrid(delta), false, LayerKind::none, Reach::state).parameters,
            1024 * delta_columns + 2048 * 1024 + 4 * delta_channels + 2 * 16 + 128 + 1024);
}

TEST(Mixers, StandInThePlaceOfAttention) {
  const Model every =
      hybrid_of("{" + dense_base + ", mixer: {kind: gated_delta, heads: 8, head_dim: 64, groups: 8, state: 64, attention_every: 4}}");
  Names kinds;
  for (int layer = 0; layer < 8; ++layer) kinds.emplace_back(every.attends(layer) ? "*" : every.has_mixer(layer) ? "M" : "?");
  EXPECT_EQ(kinds, (Names{"M", "M", "M", "*", "M", "M", "M", "*"}));
  EXPECT_EQ(every.mixer->chunk, 64);
  EXPECT_EQ(hybrid_of("{" + dense_base + ", " + mamba + "}").mixer->chunk, 128);
  const Model blocks = hybrid_of("{" + dense_base + ", " + mamba + ", pattern: M-M*-M-*}");
  EXPECT_EQ(shape_of(blocks, 0), (LayerShape{LayerKind::none, Reach::state}));
  EXPECT_EQ(shape_of(blocks, 1), (LayerShape{LayerKind::dense, Reach::none}));
  EXPECT_EQ(shape_of(blocks, 3), (LayerShape{LayerKind::none, Reach::sequence}));
}

// Megatron-Core gathers before the projection in and scatters behind the projection out, as around attention.
TEST(Mixers, ExchangeAsMegatronDoes) {
  const Workload w = hybrid(mamba, 4);
  const BlockProgram layer = layer_program(w, true, LayerKind::none, Reach::state);
  Names calls;
  for (const Communication& call : communications(layer.forward)) calls.push_back(call.name);
  EXPECT_EQ(calls, (Names{"mixer all-gather", "mixer reduce-scatter"}));
  // All is computed again, of a stack that stops early but for the product whose output nobody reads.
  EXPECT_EQ(flops(layer.recompute), flops(layer.forward));
  Workload early = w;
  early.recompute = {.kind = RecomputeKind::full, .full_layers = -1, .stops_early = true};
  const double out = 2.0 * 2048 * 1024 * 2048 / 4;
  EXPECT_DOUBLE_EQ(flops(layer_program(early, true, LayerKind::none, Reach::state).recompute), flops(layer.forward) - out);
}

// All-to-all over cp: the five parts of the projection before the scan, its values behind; what few groups are repeated for.
TEST(Mixers, ExchangeTheSequenceForHeads) {
  const Workload w = hybrid("mixer: {kind: mamba2, heads: 32, head_dim: 64, groups: 2, state: 128}", 1, 4);
  const double each = 2.0 * 2048 / 4;
  std::vector<double> bytes;
  for (const Communication& call : communications(layer_program(w, false, LayerKind::none, Reach::state).forward)) {
    EXPECT_EQ(call.group, GroupKind::cp);
    bytes.push_back(call.bytes / each);
  }
  EXPECT_EQ(bytes, (std::vector<double>{2048, 2048, 4 * 128, 4 * 128, 32, 2048}));
}

// The dual form's products (arXiv 2405.21060, section 6): B C^T of each group, of each head half of a chunk's square with the values, and
// two products with the state; backward runs the first three kernels again and has nine products with two inputs' gradients.
TEST(Mixers, ScanTheseFlops) {
  const Workload w = hybrid(mamba);
  const Shard shard = shard_of(w, Reach::state);
  const MixerShare share = mixer_share(*w.model.mixer, shard);
  const double tokens = 2048, state = 2 * 2048.0 * 128, chunk = 2048.0 * 128, group = 2 * 8.0 * 128 * 128;
  const MixerKind& kind = MixerRegistry::get("mamba2");
  EXPECT_EQ(flops_of(kind.forward(share)), tokens * (2 * state + chunk + group));
  EXPECT_EQ(flops_of(kind.backward(share)), tokens * (5 * state + 3 * chunk + 3 * group));
}

// Every rank of tp and cp has its share of all of it.
TEST(Mixers, AreSharedEvenly) {
  for (const std::string& more : {mamba, delta}) {
    const Workload whole = hybrid(more);
    const double all = flops(layer_program(whole, false, LayerKind::none, Reach::state).forward);
    for (const auto& [tp, cp] : {std::pair(2, 1), std::pair(1, 2), std::pair(4, 2)}) {
      const BlockProgram part = layer_program(hybrid(more, tp, cp), false, LayerKind::none, Reach::state);
      EXPECT_NEAR(tp * cp * flops(part.forward) / all, 1, 1e-9) << more << tp << cp;
    }
  }
}

// Of several sequences in a micro-batch Megatron-Core's MambaMixer copies what was projected (z, x, B, C, dt) to lie by sequence, and the
// output back, forward and backward; a delta rule's copies are among its inputs.
TEST(Mixers, AreCopiedToLieBySequence) {
  const auto copied = [](const std::string& more, int micro, bool forward) {
    Workload w = hybrid(more);
    w.batch.micro = micro;
    const BlockProgram program = layer_program(w, false, LayerKind::none, Reach::state);
    double bytes = 0;
    for (const Item& item : forward ? program.forward : program.backward) {
      const auto* op = std::get_if<Operator>(&item);
      if (op != nullptr && op->name.starts_with("mixer_by_")) bytes += op->bytes;
    }
    return bytes;
  };
  for (const bool forward : {true, false}) {
    EXPECT_EQ(copied(mamba, 2, forward), 2 * 2048 * 2 * 2.0 * (2 * 2048 + 2 * 1024 + 32 + 2048));
    EXPECT_EQ(copied(mamba, 1, forward), 0);
    EXPECT_EQ(copied(delta, 2, forward), 0);
  }
}

// State does not grow with the sequence: twice the tokens, twice the work, whatever the length.
TEST(Mixers, TakeTimeByTheToken) {
  Workload w = hybrid(mamba);
  const double once = flops(layer_program(w, false, LayerKind::none, Reach::state).backward);
  w.batch.sequence *= 8;
  EXPECT_DOUBLE_EQ(flops(layer_program(w, false, LayerKind::none, Reach::state).backward), 8 * once);
}

// In 16 bits per token: input and normed input of 1,024, of Mamba z, x, B, C, dt, the scan's output and its normed product; statistics.
TEST(Mixers, KeepTheseActivations) {
  const Workload w = hybrid(mamba);
  const double tokens = 2048, kept = 2 * 1024 + 2 * 2048 + 2 * 1024 + 32 + 2048 + 2048;
  EXPECT_EQ(layer_activation_bytes(w, false, LayerKind::none, Reach::state), tokens * (2 * kept + 4 * 8));
  EXPECT_EQ(layer_activation_bytes(w, true, LayerKind::none, Reach::state), tokens * 2 * 1024);
  // With an MLP beside it both are kept.
  EXPECT_EQ(
      layer_activation_bytes(w, false, LayerKind::dense, Reach::state),
      layer_activation_bytes(w, false, LayerKind::none, Reach::state) + layer_activation_bytes(w, false, LayerKind::dense, Reach::none));
}

// A layer that is computed again but for what queries, keys and values are projected to keeps the gate as well.
TEST(Mixers, KeepTheGateWithTheQueries) {
  const auto kept = [](const std::string& more) {
    Workload w = hybrid(more);
    w.recompute = {.kind = RecomputeKind::full, .full_layers = -1, .kept = {LayerOutput::linear_qkv}};
    return layer_activation_bytes(w, true);
  };
  EXPECT_EQ(kept(delta + ", attention_gate: true, pattern: MM*-M-M*") - kept(delta + ", pattern: MM*-M-M*"), 2048 * 1024 * 2);
}

// 6 for each matrix weight, and forward and backward three times what Megatron-Core's num_floating_point_operations has for the scan.
TEST(Mixers, CountAsMegatronCounts) {
  const Model model = hybrid_of("{" + dense_base + ", " + mamba + ", pattern: M-M*-M-*}");
  const double mixer = 1024.0 * (2 * 2048 + 2 * 1024 + 32) + 2048.0 * 1024, mlp = 2.0 * 1024 * 4096,
               attention = 1024.0 * (2 * 1024 + 2 * 256);
  const double s = 4096, expected = 6 * s * (3 * mixer + 3 * mlp + 2 * attention + 1024.0 * 32000) + 3 * s * 3 * 7 * 2048 * 128;
  EXPECT_DOUBLE_EQ(model_flops_per_sequence(model, 4096, false) - attention_flops_per_sequence(model, 4096, false), expected);
  EXPECT_DOUBLE_EQ(attention_flops_per_sequence(model, 4096, false), 2 * 12 * s * s * 1024);
}

// A module of multi-token prediction has an MLP though no layer has one: its two gradients, in 16 bits, have placeholders.
TEST(Mixers, HaveModulesWithAnMlpBehindThem) {
  MemoryHabits habits;
  habits.gradient_placeholders = true;
  const auto bytes = [&](const char* modules) { return placeholder_bytes(hybrid(mamba + ", pattern: M*M*M*M*" + modules), habits); };
  EXPECT_EQ(bytes(", mtp: 1") - bytes(""), 2.0 * 2 * 1024 * 4096);
}

TEST(Mixers, AreRefusedWhereTheyCannotBe) {
  const auto expect = [](const std::string& more, const std::string& words) {
    const std::string said = config::refusal_of([&] { static_cast<void>(hybrid_of("{" + dense_base + ", " + more + "}")); });
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_TRUE(said.starts_with("model.yaml:1:")) << said;
  };
  expect("pattern: M-M*-M-*", "'M' without mixer");
  expect(mamba + ", pattern: M-M*-M-", "7 letters for 8 layers");
  expect(mamba + ", pattern: M-M*-M-X", "'X' is no layer");
  expect(mamba + ", pattern: M-M--M--", "no '*' beside heads");
  expect(mamba + ", post_norms: true", "norms behind branches are not simulated");
  expect(mamba + ", parallel_residual: one_norm", "not simulated of models with a mixer");
  expect("mixer: {kind: mamba3, heads: 8, head_dim: 8, groups: 8, state: 8}", "mamba2");
  expect("mixer: {kind: mamba2, heads: 8, head_dim: 8, groups: 3, state: 8}", "heads (8) is not a multiple of groups (3)");
  expect("mixer: {kind: mamba2, heads: 8, head_dim: 8, groups: 8, state: 8, first_attention: 2}", "attention_every: 0");
  // Of eight layers the last is 7: an attention that begins behind it would be none.
  const std::string of_eight = "mixer: {kind: mamba2, heads: 8, head_dim: 8, groups: 8, state: 8, attention_every: ";
  expect(of_eight + "4, first_attention: 8}", "the first layer with attention would be 8, and the last of the model is 7");
  expect(of_eight + "9}", "the first layer with attention would be 8, and the last of the model is 7");
  expect("mixer: {kind: mamba2, heads: 8, head_dim: 8, groups: 8, state: 8}, qk_norm: true", "no layer has queries and keys");
  expect("mixer: {kind: mamba2, heads: 8, head_dim: 8, groups: 8, state: 8}, attention_gate: true", "of attention with queries");
}

}  // namespace
}  // namespace rehearse::workloads::testing
