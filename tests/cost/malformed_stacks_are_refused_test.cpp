#include <gtest/gtest.h>

#include "config/input_error.hpp"
#include "gpu_files.hpp"

namespace rehearse::sim::testing {
namespace {

const std::string good_software =
    "source: test\n"
    "fusions: {softmax: true, norm: true, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
    "          gradient_accumulation: true, optimizer: true}\n"
    "launch: 2 us\n"
    "issue: 6 us\n"
    "step: 5 ms\n";

const std::string good_memory =
    "step: 5 ms\n"
    "memory: {context: 1 GiB, communicator: 96 MiB, fragmentation: 0.04, buckets: 0 B, gradient_placeholders: true,\n"
    "         half_gradients: false, sharded_master: false}\n";

// The whole message of reading the good file with one piece of it replaced.
std::string software_error(const std::string& what, const std::string& by) {
  try {
    static_cast<void>(read_software(config::Node::load_text(replaced(good_software, what, by), "s.yaml"), "s"));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MalformedStacks, TheUnchangedFileIsAccepted) { EXPECT_EQ(software_error("2 us", "2 us"), "accepted"); }

TEST(MalformedStacks, UnknownKernels) {
  EXPECT_NE(software_error("step: 5 ms\n", "step: 5 ms\nflash: 5\n").find("flash cannot be '5'"), std::string::npos);
  EXPECT_NE(software_error("step: 5 ms\n", "step: 5 ms\nexperts: {grouped_kernel: cutlass}\n").find("grouped_kernel cannot be 'cutlass'"),
            std::string::npos);
}

TEST(MalformedStacks, UnknownFusion) {
  EXPECT_EQ(
      software_error("softmax", "sofmax"),
      "s.yaml:2:11: error: unknown key 'sofmax' in fusions\n"
      "    2 | fusions: {sofmax: true, norm: true, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
      "      |           ^\n"
      "  did you mean 'softmax'? known: softmax, norm, activation, dropout_add, rope, cross_entropy, gradient_accumulation, optimizer");
}

TEST(MalformedStacks, MissingFusion) {
  EXPECT_EQ(software_error(", optimizer: true", ""),
            "s.yaml:2:10: error: missing key 'optimizer' in fusions\n"
            "    2 | fusions: {softmax: true, norm: true, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
            "      |          ^");
}

TEST(MalformedStacks, FusionNotBoolean) {
  EXPECT_EQ(software_error("norm: true", "norm: yes"),
            "s.yaml:2:32: error: fusions.norm must be true or false, not 'yes'\n"
            "    2 | fusions: {softmax: true, norm: yes, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
            "      |                                ^");
}

TEST(MalformedStacks, NegativeTime) {
  EXPECT_EQ(software_error("launch: 2 us", "launch: -2 us"),
            "s.yaml:4:9: error: launch must not be negative: '-2 us'\n"
            "    4 | launch: -2 us\n"
            "      |         ^");
}

TEST(MalformedStacks, WhoseQueueIsNotCounted) {
  const std::string memory =
      "step: 5 ms\nmemory: {context: 1 GiB, communicator: 0 B, fragmentation: 0, buckets: 0 B, gradient_placeholders: false,\n"
      "         half_gradients: false, sharded_master: false, host_ahead: ";
  for (const std::string ahead : {"queue", "messages", "warm-up"}) {
    EXPECT_EQ(software_error("step: 5 ms\n", memory + ahead + "}\n"),
              "s.yaml:8:68: error: how far the queue reaches is not known\n"
              "    8 |          half_gradients: false, sharded_master: false, host_ahead: " +
                  ahead + "}\n      | " + std::string(67, ' ') +
                  "^\n"
                  "  memory.launches: {forward: N, backward: N} of a layer");
    EXPECT_EQ(software_error("step: 5 ms\n", memory + ahead + ", launches: {forward: 19, backward: 29}}\n"), "accepted");
  }
  EXPECT_EQ(software_error("step: 5 ms\n", memory + "units}\n"), "accepted");
}
TEST(MalformedStacks, UnknownKey) {
  EXPECT_EQ(
      software_error("issue", "isue"),
      "s.yaml:5:1: error: unknown key 'isue'\n"
      "    5 | isue: 6 us\n"
      "      | ^\n"
      "  did you mean 'issue'? known: source, trains, fusions, experts, kernel_time, cast_time, launch, issue, deterministic, "
      "launch_blocking, "
      "network_wait, "
      "network_rate, "
      "step, collectives, "
      "flash, early_stop, zero3_issue, tp_issue, "
      "zero3_by_tensor, adapter_units, gathers_again, copies_exchanged, flat_parameters, joins_at_once, root_unit, all_reduces_gradients, "
      "broadcasts_weights, "
      "host_update, "
      "whole_messages, selective_by_product, selective_narrow, fp8_recipe, log_softmax, adopts_gradients, whole_logits, whole_head, "
      "vocab_multiple, remakes_logits, "
      "loss_pieces, widens_pieces, "
      "repeats_kv, joined_norms, attention_copied, packed_qkv, own_tokens_first, keeps_gathered, separate_qkv, separate_gate, "
      "fused_adapters, "
      "reduces_by_product, "
      "copies_shared, "
      "gathers_by_product, "
      "merges_branches, joins_gathered, autocast, compiled, rope_kernels, rope_copies, rope_by_document, "
      "activation_kernels, activation_copies, activation_kept, loss_copies, fused_loss_copies, "
      "update_kernels, untuned_norm_time, head_norm_time, sums_by_block, zeroes_gradients, gradient_checks, copies_buckets, casts_weights, "
      "fused_casts, "
      "transposes_frozen, "
      "memory, "
      "serving");
}

TEST(MalformedStacks, WhoseViewsAreCopied) {
  EXPECT_EQ(software_error("step: 5 ms\n", "step: 5 ms\ncopies_exchanged: true\nflat_parameters: true\n"),
            "s.yaml:8:18: error: flat_parameters are not copied out of what was gathered\n"
            "    8 | flat_parameters: true\n"
            "      |                  ^\n"
            "  flat_parameters: false, or copies_exchanged: false");
}

TEST(MalformedStacks, WhoseRecipeIsNoneOfEightBits) {
  EXPECT_EQ(software_error("step: 5 ms\n", "step: 5 ms\nfp8_recipe: nvfp4\n"),
            "s.yaml:7:13: error: fp8_recipe cannot be 'nvfp4'\n"
            "    7 | fp8_recipe: nvfp4\n"
            "      |             ^\n"
            "  known: delayed, tensorwise, rowwise, rowwise_with_gw_hp, blockwise, mxfp8");
  EXPECT_EQ(software_error("step: 5 ms\n", "step: 5 ms\nfp8_recipe: mxfp8\n"), "accepted");
}

TEST(MalformedStacks, WhoseScalesOfRowsAreOfWeightsCastOnce) {
  for (const std::string recipe : {"rowwise", "rowwise_with_gw_hp"}) {
    const std::string given = "step: 5 ms\nfp8_recipe: " + recipe + "\n";
    EXPECT_EQ(software_error("step: 5 ms\n", given + "casts_weights: true\n"),
              "s.yaml:7:13: error: scales of rows are torchao's, which does not cast weights once per step\n"
              "    7 | fp8_recipe: " +
                  recipe +
                  "\n"
                  "      |             ^\n"
                  "  casts_weights: false, or fp8_recipe: tensorwise");
    EXPECT_EQ(software_error("step: 5 ms\n", given), "accepted");
  }
}

TEST(MalformedStacks, WhoseGradientsAreNotJoined) {
  EXPECT_EQ(software_error("step: 5 ms\n", "step: 5 ms\njoins_at_once: true\n"),
            "s.yaml:7:16: error: joins_at_once changes nothing where no gradients are joined\n"
            "    7 | joins_at_once: true\n"
            "      |                ^\n"
            "  flat_parameters: true");
}

TEST(MalformedStacks, WhoseFusedUpdateIsALoop) {
  EXPECT_EQ(software_error("step: 5 ms\n", "step: 5 ms\nupdate_kernels: 12\n"),
            "s.yaml:7:17: error: update_kernels changes nothing where the update is fused\n"
            "    7 | update_kernels: 12\n"
            "      |                 ^\n"
            "  fusions: {optimizer: false}");
  EXPECT_EQ(software_error("step: 5 ms\n", "step: 5 ms\nupdate_kernels: 0\n"), "accepted");
  EXPECT_EQ(software_error("optimizer: true}\nlaunch: 2 us\nissue: 6 us\nstep: 5 ms\n",
                           "optimizer: false}\nlaunch: 2 us\nissue: 6 us\nstep: 5 ms\nupdate_kernels: 12\n"),
            "accepted");
}

TEST(MalformedStacks, ThatWritesOverTheInputsOfSeveralOperators) {
  const std::string in_place = replaced(good_memory, "sharded_master: false", "sharded_master: false, activation_in_place: true");
  EXPECT_EQ(software_error("step: 5 ms\n", in_place), "accepted");
  const std::string from = good_software.substr(good_software.find("activation: true"));
  const std::string apart = replaced(replaced(from, "activation: true", "activation: false"), "step: 5 ms\n", in_place);
  EXPECT_NE(software_error(from, apart).find("error: activation_in_place changes nothing where the activation is not fused"),
            std::string::npos);
}

TEST(MalformedStacks, OfOnePieceWhosePiecesAreApart) {
  const std::string apart = replaced(good_memory, "sharded_master: false", "sharded_master: false, pieces_apart: true");
  EXPECT_NE(software_error("step: 5 ms\n", apart).find("s.yaml:8:70: error: pieces_apart changes nothing where the head is one piece"),
            std::string::npos);
  EXPECT_EQ(software_error("step: 5 ms\n", apart + "loss_pieces: 8\n"), "accepted");
  EXPECT_NE(software_error("step: 5 ms\n", "step: 5 ms\nwidens_pieces: true\n").find("widens_pieces changes nothing"), std::string::npos);
}

TEST(MalformedStacks, WithoutAdaptersOfTheirOwnThatCouldComeAgain) {
  const std::string step = "step: 5 ms\n", again = step + "gathers_again: adapters\n";
  EXPECT_NE(software_error(step, again).find("error: no adapter comes by itself that could come again"), std::string::npos);
  EXPECT_EQ(software_error(step, again + "adapter_units: true\n"), "accepted");
  EXPECT_NE(software_error(step, again + "adapter_units: true\nzero3_by_tensor: true\n").find("no adapter comes by itself"),
            std::string::npos);
}

TEST(MalformedStacks, LaunchesOfExperts) {
  const std::string step = "step: 5 ms\n";
  EXPECT_EQ(software_error(step, step + "experts: {pairing_kernels: {forward: 0, backward: 7}}\n"), "accepted");
  EXPECT_EQ(software_error(step, step + "experts: {routing_kernels: {forward: 3}}\n"),
            "s.yaml:7:28: error: missing key 'backward' in experts.routing_kernels\n"
            "    7 | experts: {routing_kernels: {forward: 3}}\n"
            "      |                            ^");
  EXPECT_EQ(software_error(step, step + "experts: {routing_kernels: {forward: 3, backward: -1}}\n"),
            "s.yaml:7:51: error: experts.routing_kernels.backward must be between 0 and 10000, not -1\n"
            "    7 | experts: {routing_kernels: {forward: 3, backward: -1}}\n"
            "      |                                                   ^");
  EXPECT_EQ(software_error(step, step + "experts: {issue: 20 us}\n"), "accepted");
  EXPECT_EQ(software_error(step, step + "experts: {issue: 20}\n").substr(0, 42), "s.yaml:7:18: error: experts.issue: a unit ");
  EXPECT_EQ(
      software_error(step, step + "experts: {routing: {forward: 3, backward: 1}}\n"),
      "s.yaml:7:11: error: unknown key 'routing' in experts\n"
      "    7 | experts: {routing: {forward: 3, backward: 1}}\n"
      "      |           ^\n"
      "  did you mean 'routing_kernels'? known: grouped_gemm, low_precision_dispatch, permutation, gathers_counts, "
      "exchanges_weights, stacked, replays_dispatch, eager, gathered_biases, fills_blocks, kept_copies, issue, "
      "routing_kernels, permutation_kernels, sorting_kernels, pairing_kernels, loop_kernels, pair_copies, product_copies, "
      "gate_bias_copies, bias_copies, clamp_copies, token_adds, sort_adds, dispatch_kernels, wire_multiple, activation_kept, kept_outputs, "
      "grouped_kernel");
}

TEST(MalformedStacks, Memory) {
  EXPECT_EQ(software_error("step: 5 ms\n", good_memory), "accepted");
  EXPECT_EQ(software_error("step: 5 ms\n", replaced(good_memory, "0.04", "1.04")),
            "s.yaml:7:63: error: memory.fragmentation must be between 0 and 1, not 1.04\n"
            "    7 | memory: {context: 1 GiB, communicator: 96 MiB, fragmentation: 1.04, buckets: 0 B, gradient_placeholders: true,\n"
            "      |                                                               ^");
  EXPECT_EQ(software_error("step: 5 ms\n", replaced(good_memory, ", sharded_master: false", "")),
            "s.yaml:7:9: error: missing key 'sharded_master' in memory\n"
            "    7 | memory: {context: 1 GiB, communicator: 96 MiB, fragmentation: 0.04, buckets: 0 B, gradient_placeholders: true,\n"
            "      |         ^");
}

TEST(MalformedStacks, Nccl) {
  EXPECT_EQ(software_error("step: 5 ms\n", replaced(good_memory, "96 MiB,", "96 MiB, nccl: 2.10,")), "accepted");
  EXPECT_EQ(software_error("step: 5 ms\n", replaced(good_memory, "96 MiB,", "96 MiB, nccl: 2.11,")),
            "s.yaml:7:54: error: memory.nccl cannot be '2.11'\n"
            "    7 | memory: {context: 1 GiB, communicator: 96 MiB, nccl: 2.11, fragmentation: 0.04, buckets: 0 B, gradient_placeholders: "
            "tru...\n"
            "      |                                                      ^\n"
            "  did you mean '2.10'? known: none, 2.10, 2.14, 2.18, 2.19, 2.23");
}

TEST(MalformedStacks, MissingStep) {
  EXPECT_EQ(software_error("step: 5 ms\n", ""),
            "s.yaml:1:1: error: missing key 'step'\n"
            "    1 | source: test\n"
            "      | ^");
}

}  // namespace
}  // namespace rehearse::sim::testing
