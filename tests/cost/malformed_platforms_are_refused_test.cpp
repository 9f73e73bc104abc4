#include <gtest/gtest.h>

#include "config/input_error.hpp"
#include "gpu_files.hpp"
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

// The whole message of reading the good file with one piece of it replaced.
std::string gpu_error(const std::string& what, const std::string& by) {
  try {
    static_cast<void>(read_gpu(config::Node::load_text(replaced(good_gpu, what, by), "gpu.yaml"), "g"));
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
}

TEST(MalformedPlatforms, DeterministicKernelsAreNoFasterThanOthers) {
  EXPECT_EQ(gpu_error_after("multiprocessors: 108\ndeterministic_attention: {64: 0.77, 128: 1}\n"), "accepted");
  EXPECT_NE(gpu_error_after("deterministic_attention: {128: 1.2}\n").find("must be between 0.001 and 1, not 1.2"), std::string::npos);
  EXPECT_NE(gpu_error_after("deterministic_attention: {}\n").find("a head dimension is missing"), std::string::npos);
  EXPECT_NE(gpu_error_after("multiprocessors: 108.5\n").find("multiprocessors must be a whole number, not '108.5'"), std::string::npos);
}

TEST(MalformedPlatforms, GroupedKernelsHaveShares) {
  EXPECT_EQ(
      gpu_error_after(
          "grouped: {torch: 0.63, megablox: 0.435, megablox_fp8: 0.3, megablox_tile: 512, streams: 0.77, turbo: 0.76, turbo_fp8: 0.6}\n"),
      "accepted");
  EXPECT_NE(gpu_error_after("grouped: {megablox_tile: -1}\n").find("grouped.megablox_tile must be between 0 and 65536, not -1"),
            std::string::npos);
  EXPECT_NE(gpu_error_after("grouped: {library: 1}\n").find("gpu.yaml:13:11: error: unknown key 'library' in grouped"), std::string::npos);
  EXPECT_NE(gpu_error_after("grouped: {torch: 3}\n").find("grouped.torch must be between 0.001 and 2, not 3"), std::string::npos);
}

TEST(MalformedPlatforms, TheUnchangedFileIsAccepted) { EXPECT_EQ(gpu_error("80 GiB", "80 GiB"), "accepted"); }

TEST(MalformedPlatforms, UnknownKey) {
  EXPECT_EQ(gpu_error("power_limit", "power_limt"),
            "gpu.yaml:4:1: error: unknown key 'power_limt'\n"
            "    4 | power_limt: 400 W\n"
            "      | ^\n"
            "  did you mean 'power_limit'? known: source, vendor, memory, driver_memory, memory_bandwidth, power_limit, launch, host_time, "
            "atomic_adds, block_sum, multiprocessors, shared_memory, any_order, deterministic_attention, retaking, eager, unaligned, "
            "block_scaled, peak, "
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
