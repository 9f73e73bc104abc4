// A trace of a simulated step gives back the GPU that it was simulated on.
#include <gtest/gtest.h>

#include "sim/calibrate/trace_contention.hpp"
#include "tests/calibrate/measurements.hpp"

namespace rehearse::calibrate::testing {
namespace {

using cli::Outcome;
using cli::run_shell;

class Traces : public ::testing::Test {
 protected:
  void SetUp() override { write(folder_.path() / "job.yaml", small_job); }
  [[nodiscard]] Outcome shell(const std::string& command) const { return run_shell(command, folder_.path()); }
  [[nodiscard]] std::string text_of(const std::string& file) const { return cli::content_of(folder_.path() / file); }
  cli::TemporaryFolder folder_;
};

// Three parameters of another GPU, each of which the job's operators tell: large and small products, attention, and what moves memory.
constexpr const char* other_gpu =
    " --set cluster.gpu.efficiency.gemm.bf16.compute=0.55 --set cluster.gpu.efficiency.attention.bf16.compute=0.7"
    " --set cluster.gpu.efficiency.memory_bound.memory=0.66";

TEST_F(Traces, ClosedLoopWithinOnePercent) {
  ASSERT_EQ(shell(std::string("\"$rehearse\" simulate job.yaml --trace-per-rank t") + other_gpu).code, 0);
  const Outcome outcome = shell("\"$rehearse\" calibrate trace t/rank0.json --job job.yaml --gpu my.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto fitted = [&](const char* path) { return number_in(folder_.path() / "my.yaml", path); };
  EXPECT_NEAR(fitted("efficiency.gemm.bf16.compute") / 0.55, 1, 0.01) << outcome.out;
  EXPECT_NEAR(fitted("efficiency.attention.bf16.compute") / 0.7, 1, 0.01) << outcome.out;
  EXPECT_NEAR(fitted("efficiency.memory_bound.memory") / 0.66, 1, 0.01) << outcome.out;
  EXPECT_EQ(fitted("efficiency.gemm.fp8.compute"), -1) << "the job has no product in 8 bits: the file says nothing new of them";
}

TEST_F(Traces, TheCalibratedJobTakesTheTracedTime) {
  ASSERT_EQ(shell(std::string("\"$rehearse\" simulate job.yaml --json --trace-per-rank t") + other_gpu + " > measured.json").code, 0);
  ASSERT_EQ(shell("\"$rehearse\" calibrate trace t/rank0.json --job job.yaml --gpu my.yaml").code, 0);
  ASSERT_EQ(shell("\"$rehearse\" simulate job.yaml --json --set 'cluster={like: dgx-h100-ndr400, gpu: ./my.yaml}' > again.json").code, 0);
  const auto step = [&](const char* file) {
    const std::string text = text_of(file);
    return std::stod(text.substr(text.find("\"step_s\":") + 9));
  };
  EXPECT_NEAR(step("again.json") / step("measured.json"), 1, 0.01);
}

TEST_F(Traces, PackedTracesAreTheSame) {
  ASSERT_EQ(shell("\"$rehearse\" simulate job.yaml --trace-per-rank t && gzip -k t/rank0.json").code, 0);
  const Outcome plain = shell("\"$rehearse\" calibrate trace t/rank0.json --job job.yaml"),
                packed = shell("\"$rehearse\" calibrate trace t/rank0.json.gz --job job.yaml");
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(plain.out.substr(plain.out.find('\n')), packed.out.substr(packed.out.find('\n')));
}

TEST_F(Traces, CutReorderedAndForeignOnesAreRefused) {
  ASSERT_EQ(shell("\"$rehearse\" simulate job.yaml --trace-per-rank t").code, 0);
  const std::string whole = text_of("t/rank0.json");
  write(folder_.path() / "cut.json", whole.substr(0, whole.size() / 2));
  std::string swapped = whole;
  for (std::size_t at = 0; (at = swapped.find("F layer 0 qkv", at)) != std::string::npos;) swapped.replace(at, 13, "F layer 1 qkv");
  ASSERT_NE(swapped, whole);
  write(folder_.path() / "swapped.json", swapped);
  write(folder_.path() / "empty.json", "{\"traceEvents\": []}");
  write(folder_.path() / "list.json", "[1, 2]");
  for (const auto& [file, says] : {std::pair("cut.json", "no trace"), std::pair("swapped.json", "where the job has"),
                                   std::pair("empty.json", "has no"), std::pair("list.json", "does not begin with '{'"),
                                   std::pair("/dev/zero", "does not begin with '{'"), std::pair("absent.json", "cannot read")}) {
    const Outcome outcome = shell(std::string("\"$rehearse\" calibrate trace ") + file + " --job job.yaml --gpu my.yaml");
    EXPECT_EQ(outcome.code, 2) << file;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << file << ": " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "my.yaml")) << file;
  }
}

sim::TraceKernel kernel(std::string name, int stream, double start_us, double duration_us) {
  sim::TraceKernel out;
  out.cls = sim::class_of(name);
  out.name = std::move(name);
  out.start_us = start_us;
  out.end_us = start_us + duration_us;
  out.stream = stream;
  return out;
}

// Ten products of 100 us, of which every other one lies beside a collective of the ep group and takes 130.
TEST(MeasuredContention, IsTheRatioOfTheSameKernelBesideAndAlone) {
  sim::KinetoTrace trace;
  for (int i = 0; i < 10; ++i) {
    const bool beside = i % 2 == 1;
    trace.kernels.push_back(kernel("sm90_xmma_gemm_bf16", 7, 1000.0 * i, beside ? 130 : 100));
    if (beside) trace.kernels.push_back(kernel("void deep_ep::internode::dispatch<8>", 20, 1000.0 * i - 10, 400));
  }
  const auto found = sim::contentions({trace});
  const auto product = std::ranges::find(found, sim::KernelClass::product, &sim::MeasuredContention::cls);
  ASSERT_NE(product, found.end());
  EXPECT_EQ(product->with, "ep");
  EXPECT_NEAR(product->factor, 1.3, 1e-9);
}

// All-reduces in a stream of their own, as hybrid sharding's over copies of a shard: the large one, alone, says nothing of the small
// ones beside products.
TEST(MeasuredContention, TellsCollectivesOfOneNameApartBySize) {
  sim::KinetoTrace trace;
  const auto all_reduce = [&](double start_us, double duration_us, double elements) {
    trace.kernels.push_back(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_SIMPLE", 20, start_us, duration_us));
    trace.kernels.back().collective.in_elements = trace.kernels.back().collective.out_elements = elements;
  };
  for (int i = 0; i < 10; ++i) {
    const double start_us = 1000.0 * i;
    if (i != 5) trace.kernels.push_back(kernel("sm90_xmma_gemm_bf16", 7, start_us, 200));
    all_reduce(start_us + 60, i == 5 ? 500 : 100, i == 5 ? 5e6 : 1e6);
  }
  for (const sim::MeasuredContention& each : sim::contentions({trace})) EXPECT_NE(each.cls, sim::KernelClass::communication) << each.factor;
}

TEST(KernelClasses, AreToldByName) {
  using enum sim::KernelClass;
  for (const auto& [name, cls] :
       {std::pair("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", communication),
        std::pair("void flash_fwd_kernel<cutlass::bfloat16_t>", attention), std::pair("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", product),
        std::pair("void cuda::per_channel_cast_and_transpose<256, 128>", memory_bound),
        std::pair("void at::native::vectorized_elementwise_kernel<4>", memory_bound), std::pair("Memcpy DtoH (Device -> Pinned)", copy),
        std::pair("cutlass::device_kernel<m_grouped_fp8_gemm>", grouped_product), std::pair("fused_qkv_rope_forward_kernel", memory_bound),
        std::pair("cross_entropy_logits_fwd", memory_bound), std::pair("F layer 3 qkv", product), std::pair("my_own", unknown)}) {
    EXPECT_EQ(sim::class_of(name), cls) << name;
  }
}

}  // namespace
}  // namespace rehearse::calibrate::testing
