#include <gtest/gtest.h>

#include "config/input_error.hpp"
#include "sim/cost/gpu.hpp"

namespace rehearse::sim::testing {
namespace {

const std::string good_gpu =
    "source: test\n"
    "memory: 80 GiB\n"
    "memory_bandwidth: 2 TB/s\n"
    "power_limit: 400 W\n"
    "launch: 3 us\n"
    "peak: {bf16: 312 TFLOP/s}\n"
    "contention:\n"
    "  tp: {alpha: 1.2, beta: 1}\n"
    "efficiency:\n"
    "  gemm: {bf16: {model: roofline, compute: 0.7}}\n"
    "  attention: {bf16: {model: modified-roofline, compute: 0.6, memory: 0.8}}\n"
    "  memory_bound: {model: roofline, memory: 0.8}\n";

const std::string good_software =
    "source: test\n"
    "fusions: {softmax: true, norm: true, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
    "          gradient_accumulation: true, optimizer: true}\n"
    "launch: 2 us\n"
    "issue: 6 us\n"
    "step: 5 ms\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

// The whole message of reading the good file with one piece of it replaced.
std::string gpu_error(const std::string& what, const std::string& by) {
  try {
    static_cast<void>(read_gpu(config::Node::load_text(replaced(good_gpu, what, by), "gpu.yaml"), "g"));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string software_error(const std::string& what, const std::string& by) {
  try {
    static_cast<void>(read_software(config::Node::load_text(replaced(good_software, what, by), "s.yaml"), "s"));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Something after the last line of the good file.
std::string gpu_error_after(const std::string& more) { return gpu_error("memory: 0.8}\n", "memory: 0.8}\n" + more); }

TEST(MalformedPlatforms, DriversLeaveSomeOfTheMemory) {
  EXPECT_EQ(gpu_error_after("driver_memory: 3 GiB\n"), "accepted");
  const std::string all = gpu_error_after("driver_memory: 80 GiB\n");
  EXPECT_EQ(all.substr(0, all.find('\n')), "gpu.yaml:13:16: error: the driver keeps all of the memory");
}

TEST(MalformedPlatforms, FlashGenerationsHaveSharesByHeadDimension) {
  EXPECT_EQ(gpu_error_after("flash: {1: {64: 0.5, 128: 0.4}, 2: {128: 1}, triton: {64: 0.6}}\n"), "accepted");
  EXPECT_NE(gpu_error_after("flash: {5: {64: 0.5}}\n").find("gpu.yaml:13:9: error: unknown key '5' in flash"), std::string::npos);
  EXPECT_NE(gpu_error_after("flash: {1: {100: 0.5}}\n").find("gpu.yaml:13:13: error: unknown key '100' in flash.1"), std::string::npos);
  EXPECT_NE(gpu_error_after("flash: {1: {64: 2.5}}\n").find("flash.1.64 must be between 0.001 and 2, not 2.5"), std::string::npos);
  EXPECT_NE(gpu_error_after("flash: {1: {}}\n").find("a head dimension is missing"), std::string::npos);
  EXPECT_NE(software_error("step: 5 ms\n", "step: 5 ms\nflash: 5\n").find("flash cannot be '5'"), std::string::npos);
}

TEST(MalformedPlatforms, GroupedKernelsHaveShares) {
  EXPECT_EQ(gpu_error_after("grouped: {torch: 0.63, megablox: 0.435, megablox_fp8: 0.3}\n"), "accepted");
  EXPECT_NE(gpu_error_after("grouped: {library: 1}\n").find("gpu.yaml:13:11: error: unknown key 'library' in grouped"), std::string::npos);
  EXPECT_NE(gpu_error_after("grouped: {torch: 3}\n").find("grouped.torch must be between 0.001 and 2, not 3"), std::string::npos);
  EXPECT_NE(software_error("step: 5 ms\n", "step: 5 ms\nexperts: {grouped_kernel: cutlass}\n").find("grouped_kernel cannot be 'cutlass'"),
            std::string::npos);
}

TEST(MalformedPlatforms, TheUnchangedFilesAreAccepted) {
  EXPECT_EQ(gpu_error("80 GiB", "80 GiB"), "accepted");
  EXPECT_EQ(software_error("2 us", "2 us"), "accepted");
}

TEST(MalformedPlatforms, UnknownKey) {
  EXPECT_EQ(gpu_error("power_limit", "power_limt"),
            "gpu.yaml:4:1: error: unknown key 'power_limt'\n"
            "    4 | power_limt: 400 W\n"
            "      | ^\n"
            "  did you mean 'power_limit'? known: source, vendor, memory, driver_memory, memory_bandwidth, power_limit, launch, host_time, "
            "atomic_adds, eager, peak, "
            "contention, efficiency, flash, grouped");
}

TEST(MalformedPlatforms, MissingSource) {
  EXPECT_EQ(gpu_error("source: test\n", ""),
            "gpu.yaml:1:1: error: missing key 'source'\n"
            "    1 | memory: 80 GiB\n"
            "      | ^");
}

TEST(MalformedPlatforms, BareNumber) {
  EXPECT_EQ(gpu_error("80 GiB", "80"),
            "gpu.yaml:2:9: error: memory: a unit is missing (write 80 GiB or 80 GB)\n"
            "    2 | memory: 80\n"
            "      |         ^");
}

TEST(MalformedPlatforms, WrongDimension) {
  EXPECT_EQ(gpu_error("2 TB/s", "2 TB"),
            "gpu.yaml:3:19: error: memory_bandwidth: unknown unit 'TB' (known: B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, "
            "TiB/s, bps, kbps, Mbps, Gbps, Tbps)\n"
            "    3 | memory_bandwidth: 2 TB\n"
            "      |                   ^");
}

TEST(MalformedPlatforms, UnknownPrecision) {
  EXPECT_EQ(gpu_error("peak: {bf16", "peak: {bf61"),
            "gpu.yaml:6:8: error: unknown key 'bf61' in peak\n"
            "    6 | peak: {bf61: 312 TFLOP/s}\n"
            "      |        ^\n"
            "  did you mean 'bf16'? known: fp32, bf16, fp16, fp8, fp4");
}

TEST(MalformedPlatforms, EmptyPeak) {
  EXPECT_EQ(gpu_error("peak: {bf16: 312 TFLOP/s}", "peak: {}"),
            "gpu.yaml:6:1: error: at least one precision is needed\n"
            "    6 | peak: {}\n"
            "      | ^\n"
            "  write for example peak: {bf16: 312 TFLOP/s}");
}

TEST(MalformedPlatforms, UnknownModel) {
  EXPECT_EQ(gpu_error("model: roofline, compute: 0.7", "model: rofline"),
            "gpu.yaml:10:24: error: efficiency.gemm.bf16.model cannot be 'rofline'\n"
            "   10 |   gemm: {bf16: {model: rofline}}\n"
            "      |                        ^\n"
            "  did you mean 'roofline'? known: modified-roofline, profile, roofline");
}

TEST(MalformedPlatforms, EfficiencyAboveOne) {
  EXPECT_EQ(gpu_error("compute: 0.7", "compute: 1.7"),
            "gpu.yaml:10:43: error: efficiency.gemm.bf16.compute must be between 0.001 and 1, not 1.7\n"
            "   10 |   gemm: {bf16: {model: roofline, compute: 1.7}}\n"
            "      |                                           ^");
}

TEST(MalformedPlatforms, MissingClass) {
  EXPECT_EQ(gpu_error("  attention: {bf16: {model: modified-roofline, compute: 0.6, memory: 0.8}}\n", ""),
            "gpu.yaml:10:3: error: missing key 'attention' in efficiency\n"
            "   10 |   gemm: {bf16: {model: roofline, compute: 0.7}}\n"
            "      |   ^");
}

TEST(MalformedPlatforms, UnknownClass) {
  EXPECT_EQ(gpu_error("  attention:", "  atention:"),
            "gpu.yaml:11:3: error: unknown key 'atention' in efficiency\n"
            "   11 |   atention: {bf16: {model: modified-roofline, compute: 0.6, memory: 0.8}}\n"
            "      |   ^\n"
            "  did you mean 'attention'? known: gemm, attention, memory_bound, embedding, loss, optimizer, gemm_few, attention_cache");
}

TEST(MalformedPlatforms, PrecisionWithoutPeak) {
  EXPECT_EQ(gpu_error("gemm: {bf16:", "gemm: {fp8:"),
            "gpu.yaml:10:10: error: the GPU has no peak for fp8\n"
            "   10 |   gemm: {fp8: {model: roofline, compute: 0.7}}\n"
            "      |          ^");
}

TEST(MalformedPlatforms, MissingLine) {
  EXPECT_EQ(gpu_error(", memory: 0.8}}", "}}"),
            "gpu.yaml:11:21: error: missing key 'memory' in efficiency.attention.bf16\n"
            "   11 |   attention: {bf16: {model: modified-roofline, compute: 0.6}}\n"
            "      |                     ^");
}

TEST(MalformedPlatforms, SoftKnee) {
  EXPECT_EQ(gpu_error("memory: 0.8}}", "memory: 0.8, knee: 0.5}}"),
            "gpu.yaml:11:81: error: efficiency.attention.bf16.knee must be between 1 and 64, not 0.5\n"
            "   11 |   attention: {bf16: {model: modified-roofline, compute: 0.6, memory: 0.8, knee: 0.5}}\n"
            "      |                                                                                 ^");
}

TEST(MalformedPlatforms, ContentionBelowOne) {
  EXPECT_EQ(gpu_error("alpha: 1.2", "alpha: 0.8"),
            "gpu.yaml:8:15: error: contention.tp.alpha must be between 1 and 100, not 0.8\n"
            "    8 |   tp: {alpha: 0.8, beta: 1}\n"
            "      |               ^");
}

TEST(MalformedPlatforms, UnknownContention) {
  EXPECT_EQ(gpu_error("  tp: {alpha", "  mp: {alpha"),
            "gpu.yaml:8:3: error: unknown key 'mp' in contention\n"
            "    8 |   mp: {alpha: 1.2, beta: 1}\n"
            "      |   ^\n"
            "  did you mean 'tp'? known: tp, cp, ep, pp, dp, offload");
}

TEST(MalformedPlatforms, EmptyProfile) {
  EXPECT_EQ(gpu_error("{model: roofline, compute: 0.7}", "{model: profile, points: []}"),
            "gpu.yaml:10:41: error: a profile needs at least one point\n"
            "   10 |   gemm: {bf16: {model: profile, points: []}}\n"
            "      |                                         ^");
}

TEST(MalformedPlatforms, RepeatedPoint) {
  EXPECT_EQ(gpu_error("{model: roofline, compute: 0.7}",
                      "{model: profile, points: [{m: 1, n: 1, k: 1, rate: 1 TFLOP/s}, {m: 1, n: 1, k: 1, rate: 2 TFLOP/s}]}"),
            "gpu.yaml:10:79: error: this shape is already in the profile\n"
            "   10 |   gemm: {bf16: {model: profile, points: [{m: 1, n: 1, k: 1, rate: 1 TFLOP/s}, {m: 1, n: 1, k: 1, rate: 2 TFLOP/s}]}}\n"
            "      |                                                                               ^");
}

TEST(MalformedPlatforms, ZeroShape) {
  EXPECT_EQ(gpu_error("{model: roofline, compute: 0.7}", "{model: profile, points: [{m: 0, n: 1, k: 1, rate: 1 TFLOP/s}]}"),
            "gpu.yaml:10:46: error: efficiency.gemm.bf16.points[0].m must be between 1 and 1099511627776, not 0\n"
            "   10 |   gemm: {bf16: {model: profile, points: [{m: 0, n: 1, k: 1, rate: 1 TFLOP/s}]}}\n"
            "      |                                              ^");
}

TEST(MalformedPlatforms, NoPrecision) {
  EXPECT_EQ(gpu_error("gemm: {bf16: {model: roofline, compute: 0.7}}", "gemm: {}"),
            "gpu.yaml:10:3: error: a precision is missing\n"
            "   10 |   gemm: {}\n"
            "      |   ^\n"
            "  write for example bf16: {model: roofline}");
}

TEST(MalformedPlatforms, ModelWithoutPrecision) {
  EXPECT_EQ(gpu_error("gemm: {bf16: {model: roofline, compute: 0.7}}", "gemm: {model: roofline}"),
            "gpu.yaml:10:10: error: unknown key 'model' in efficiency.gemm\n"
            "   10 |   gemm: {model: roofline}\n"
            "      |          ^\n"
            "  known: fp32, bf16, fp16, fp8, fp4");
}

TEST(MalformedPlatforms, SoftwareUnknownFusion) {
  EXPECT_EQ(
      software_error("softmax", "sofmax"),
      "s.yaml:2:11: error: unknown key 'sofmax' in fusions\n"
      "    2 | fusions: {sofmax: true, norm: true, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
      "      |           ^\n"
      "  did you mean 'softmax'? known: softmax, norm, activation, dropout_add, rope, cross_entropy, gradient_accumulation, optimizer");
}

TEST(MalformedPlatforms, SoftwareMissingFusion) {
  EXPECT_EQ(software_error(", optimizer: true", ""),
            "s.yaml:2:10: error: missing key 'optimizer' in fusions\n"
            "    2 | fusions: {softmax: true, norm: true, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
            "      |          ^");
}

TEST(MalformedPlatforms, SoftwareFusionNotBoolean) {
  EXPECT_EQ(software_error("norm: true", "norm: yes"),
            "s.yaml:2:32: error: fusions.norm must be true or false, not 'yes'\n"
            "    2 | fusions: {softmax: true, norm: yes, activation: true, dropout_add: true, rope: true, cross_entropy: true,\n"
            "      |                                ^");
}

TEST(MalformedPlatforms, SoftwareNegativeTime) {
  EXPECT_EQ(software_error("launch: 2 us", "launch: -2 us"),
            "s.yaml:4:9: error: launch must not be negative: '-2 us'\n"
            "    4 | launch: -2 us\n"
            "      |         ^");
}

TEST(MalformedPlatforms, SoftwareWhoseQueueIsNotCounted) {
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
TEST(MalformedPlatforms, SoftwareUnknownKey) {
  EXPECT_EQ(
      software_error("issue", "isue"),
      "s.yaml:5:1: error: unknown key 'isue'\n"
      "    5 | isue: 6 us\n"
      "      | ^\n"
      "  did you mean 'issue'? known: source, trains, fusions, experts, kernel_time, launch, issue, network_wait, network_rate, "
      "step, collectives, "
      "flash, early_stop, zero3_issue, "
      "zero3_by_tensor, adapter_units, copies_exchanged, all_reduces_gradients, broadcasts_weights, host_update, "
      "whole_messages, selective_by_product, selective_narrow, log_softmax, adopts_gradients, whole_logits, whole_head, remakes_logits, "
      "loss_pieces, widens_pieces, "
      "packed_qkv, own_tokens_first, keeps_gathered, separate_qkv, separate_gate, fused_adapters, reduces_by_product, copies_shared, "
      "gathers_by_product, "
      "merges_branches, joins_gathered, autocast, compiled, rope_kernels, rope_copies, rope_by_document, "
      "activation_kernels, activation_copies, activation_kept, loss_copies, "
      "update_kernels, untuned_norm_time, zeroes_gradients, casts_weights, fused_casts, transposes_frozen, memory, serving");
}

TEST(MalformedPlatforms, SoftwareWhoseFusedUpdateIsALoop) {
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

const std::string good_memory =
    "step: 5 ms\n"
    "memory: {context: 1 GiB, communicator: 96 MiB, fragmentation: 0.04, buckets: 0 B, gradient_placeholders: true,\n"
    "         half_gradients: false, sharded_master: false}\n";

TEST(MalformedPlatforms, SoftwareThatWritesOverTheInputsOfSeveralOperators) {
  const std::string in_place = replaced(good_memory, "sharded_master: false", "sharded_master: false, activation_in_place: true");
  EXPECT_EQ(software_error("step: 5 ms\n", in_place), "accepted");
  const std::string from = good_software.substr(good_software.find("activation: true"));
  const std::string apart = replaced(replaced(from, "activation: true", "activation: false"), "step: 5 ms\n", in_place);
  EXPECT_NE(software_error(from, apart).find("error: activation_in_place changes nothing where the activation is not fused"),
            std::string::npos);
}

TEST(MalformedPlatforms, SoftwareOfOnePieceWhosePiecesAreApart) {
  const std::string apart = replaced(good_memory, "sharded_master: false", "sharded_master: false, pieces_apart: true");
  EXPECT_NE(software_error("step: 5 ms\n", apart).find("s.yaml:8:70: error: pieces_apart changes nothing where the head is one piece"),
            std::string::npos);
  EXPECT_EQ(software_error("step: 5 ms\n", apart + "loss_pieces: 8\n"), "accepted");
  EXPECT_NE(software_error("step: 5 ms\n", "step: 5 ms\nwidens_pieces: true\n").find("widens_pieces changes nothing"), std::string::npos);
}

TEST(MalformedPlatforms, SoftwareLaunchesOfExperts) {
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
  EXPECT_EQ(software_error(step, step + "experts: {routing: {forward: 3, backward: 1}}\n"),
            "s.yaml:7:11: error: unknown key 'routing' in experts\n"
            "    7 | experts: {routing: {forward: 3, backward: 1}}\n"
            "      |           ^\n"
            "  did you mean 'routing_kernels'? known: grouped_gemm, low_precision_dispatch, permutation, gathers_counts, "
            "exchanges_weights, stacked, replays_dispatch, eager, gathered_biases, "
            "routing_kernels, permutation_kernels, sorting_kernels, pairing_kernels, loop_kernels, pair_copies, product_copies, "
            "gate_bias_copies, bias_copies, clamp_copies, token_adds, sort_adds, kept_outputs, grouped_kernel");
}

TEST(MalformedPlatforms, SoftwareMemory) {
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

TEST(MalformedPlatforms, SoftwareNccl) {
  EXPECT_EQ(software_error("step: 5 ms\n", replaced(good_memory, "96 MiB,", "96 MiB, nccl: 2.10,")), "accepted");
  EXPECT_EQ(software_error("step: 5 ms\n", replaced(good_memory, "96 MiB,", "96 MiB, nccl: 2.11,")),
            "s.yaml:7:54: error: memory.nccl cannot be '2.11'\n"
            "    7 | memory: {context: 1 GiB, communicator: 96 MiB, nccl: 2.11, fragmentation: 0.04, buckets: 0 B, gradient_placeholders: "
            "tru...\n"
            "      |                                                      ^\n"
            "  did you mean '2.10'? known: none, 2.10, 2.14, 2.18, 2.19, 2.23");
}

TEST(MalformedPlatforms, SoftwareMissingStep) {
  EXPECT_EQ(software_error("step: 5 ms\n", ""),
            "s.yaml:1:1: error: missing key 'step'\n"
            "    1 | source: test\n"
            "      | ^");
}

TEST(MalformedPlatforms, ProfileOfMovement) {
  EXPECT_EQ(gpu_error("memory_bound: {model: roofline, memory: 0.8}", "memory_bound: {model: profile, points: []}"),
            "gpu.yaml:12:25: error: a profile prices gemm and attention only\n"
            "   12 |   memory_bound: {model: profile, points: []}\n"
            "      |                         ^\n"
            "  use roofline");
}

TEST(MalformedPlatforms, GemmShapeInAnAttentionProfile) {
  EXPECT_EQ(
      gpu_error("{model: modified-roofline, compute: 0.6, memory: 0.8}", "{model: profile, points: [{m: 1, n: 1, k: 1, rate: 1 TFLOP/s}]}"),
      "gpu.yaml:11:48: error: unknown key 'm' in efficiency.attention.bf16.points[0]\n"
      "   11 |   attention: {bf16: {model: profile, points: [{m: 1, n: 1, k: 1, rate: 1 TFLOP/s}]}}\n"
      "      |                                                ^\n"
      "  known: query, key, head_dim, heads, rate");
}

}  // namespace
}  // namespace rehearse::sim::testing
