// What traces of PyTorch's profiler tell without being named as a job's operations: shapes, hosts, networks, places in a step.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "config/data_dir.hpp"
#include "sim/calibrate/trace_host.hpp"
#include "sim/calibrate/traced_collectives.hpp"
#include "sim/calibrate/traced_operators.hpp"
#include "sim/job/parts.hpp"
#include "tests/calibrate/measurements.hpp"
#include "tests/calibrate/written_trace.hpp"

namespace rehearse::calibrate::testing {
namespace {

using cli::Outcome;
using cli::run_shell;

const std::vector<std::string> two_bf16{"c10::BFloat16", "c10::BFloat16"};
constexpr const char* product_kernel = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64";

class RealTraces : public ::testing::Test {
 protected:
  void SetUp() override { write(folder_.path() / "job.yaml", small_job); }
  [[nodiscard]] Outcome shell(const std::string& command) const { return run_shell(command, folder_.path()); }
  [[nodiscard]] sim::KinetoTrace read(const WrittenTrace& trace) const {
    write(folder_.path() / "written.json", trace.text());
    return sim::read_kineto((folder_.path() / "written.json").string());
  }
  [[nodiscard]] double fitted(const char* file, const char* path) const { return number_in(folder_.path() / file, path); }
  cli::TemporaryFolder folder_;
};

// FLOPs and bytes by hand.
TEST_F(RealTraces, OperatorsAreCountedByTheShapesOfTheirArguments) {
  WrittenTrace trace;
  trace.call("aten::mm", {{4096, 1024}, {1024, 2048}}, two_bf16, {"", ""}, product_kernel, 100);
  trace.call("aten::addmm", {{2048}, {4096, 1024}, {1024, 2048}, {}, {}}, {"c10::Half", "c10::Half", "c10::Half", "Scalar", "Scalar"},
             {"", "", "", "1", "1"}, product_kernel, 110);
  trace.call("aten::_scaled_dot_product_flash_attention", {{2, 8, 512, 64}, {2, 2, 512, 64}, {2, 2, 512, 64}, {}, {}},
             {"c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"}, {"", "", "", "0.", "True"},
             "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>", 50);
  trace.call("aten::add", {{4096, 1024}, {4096, 1024}, {}}, {"c10::BFloat16", "c10::BFloat16", "Scalar"}, {"", "", "1"},
             "void at::native::vectorized_elementwise_kernel<4>", 20);
  std::map<std::string, sim::TracedOperator> by_name;
  for (const sim::TracedOperator& each : sim::traced_operators(std::vector{read(trace)}))
    by_name[each.shown.substr(0, each.shown.find(' '))] = each;
  ASSERT_EQ(by_name.size(), 4U);
  EXPECT_DOUBLE_EQ(by_name["aten::mm"].op.flops, 2.0 * 4096 * 1024 * 2048);
  EXPECT_DOUBLE_EQ(by_name["aten::mm"].op.bytes, 2.0 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048));
  EXPECT_DOUBLE_EQ(by_name["aten::mm"].median_s, 100e-6);
  EXPECT_EQ(by_name["aten::addmm"].op.dtype, workloads::DType::fp16);
  EXPECT_DOUBLE_EQ(by_name["aten::addmm"].op.flops, by_name["aten::mm"].op.flops);
  const sim::TracedOperator& attention = by_name["aten::_scaled_dot_product_flash_attention"];
  EXPECT_DOUBLE_EQ(attention.op.flops, 4.0 * 2 * 8 * 512 * 512 * 64 / 2) << "causal";
  EXPECT_EQ(attention.op.heads, 8);
  EXPECT_EQ(attention.op.kv_heads, 2);
  EXPECT_EQ(attention.flash, 2);
  EXPECT_DOUBLE_EQ(by_name["aten::add"].op.bytes, 3.0 * 4096 * 1024 * 2);
}

TEST_F(RealTraces, WhatSaysNothingOfARateIsLeftOut) {
  WrittenTrace trace;
  trace.call("aten::mm", {{4096, 1024}, {1024, 3137}}, two_bf16, {"", ""}, product_kernel, 100);  // no multiple of 16
  trace.call("aten::mm", {{16, 1024}, {1024, 2048}}, two_bf16, {"", ""}, product_kernel, 100);    // few tokens
  trace.call("aten::mm", {{4096, 1024}, {512, 2048}}, two_bf16, {"", ""}, product_kernel, 100);   // no product
  trace.call("aten::mm", {{4096, 1024}, {1024, 2048}}, {"long int", "long int"}, {"", ""}, product_kernel, 100);
  trace.call("aten::mul", {{4096, 1024}, {1024}}, two_bf16, {"", ""}, "elementwise_kernel", 30);  // a row for all rows
  trace.call("aten::mul", {{4096, 1024}, {4096, 1024}}, {{1, 4096}, {1024, 1}}, two_bf16, {"", ""}, "elementwise_kernel", 30);
  trace.call("aten::_flash_attention_forward", {{2, 512, 8, 64}, {2, 512, 8, 64}, {2, 512, 8, 64}}, {"c10::BFloat16"}, {}, "flash", 30);
  trace.call("aten::mm", {{4096, 1024}, {1024, 2048}}, two_bf16, {"", ""}, "at::native::fill", 30);  // no kernel of a product
  EXPECT_TRUE(sim::traced_operators(std::vector{read(trace)}).empty());
  const double start = trace.now_us();
  trace.call("aten::mm", {{4096, 1024}, {1024, 2048}}, two_bf16, {"", ""}, product_kernel, 100);
  trace.communication("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", start + 50, 300);
  EXPECT_TRUE(sim::traced_operators(std::vector{read(trace)}).empty()) << "beside communication";
}

// A stack that leaves its attention to PyTorch ran the kernels that the trace names: on Blackwell the older ones reach 0.34 of the newest.
TEST(TracedOperators, ArePricedByTheKernelsThatRan) {
  const sim::Part part = sim::ready_made(sim::gpu_part, "b200-sxm");
  const sim::Gpu gpu = sim::read_gpu(part.node, part.name);
  sim::TracedOperator traced;
  traced.op.cls = workloads::OperatorClass::attention;
  traced.op.dtype = workloads::DType::bf16;
  traced.op.flops = 1e13;
  traced.op.head_dim = 128;
  for (const int stack : {sim::sdpa, 3}) {
    sim::Software software;
    software.flash = stack;
    traced.flash = 3;
    const double newest = sim::device_seconds(traced, gpu, software);
    traced.flash = 2;
    EXPECT_NEAR(newest / sim::device_seconds(traced, gpu, software), 0.34, 1e-9) << stack;
  }
}

// Operators that take what a GPU would take whose products reach 0.55 of its peak, and whose memory 0.66 of its bandwidth.
TEST_F(RealTraces, ShapesGiveTheGpuBackWithoutAJob) {
  sim::Part part = sim::ready_made(sim::gpu_part, "h100-sxm5-80g");
  part.node.set("efficiency.gemm.bf16.compute", "0.55");
  part.node.set("efficiency.memory_bound.memory", "0.66");
  const sim::Gpu gpu = sim::read_gpu(part.node, part.name);
  std::map<std::string, double> seconds;  // by that GPU
  const auto written = [&] {
    WrittenTrace trace;
    const auto call = [&](const char* name, const WrittenTrace::Sizes& dims, const char* kernel) {
      const std::string shown = fmt::format("{} {} {}", name, fmt::join(dims[0], "x"), fmt::join(dims[1], "x"));
      trace.call(name, dims, two_bf16, {"", ""}, kernel, seconds.empty() ? 100 : 1e6 * seconds.at(shown));
    };
    for (const std::int64_t rows : {2048, 4096, 8192, 16384}) {
      call("aten::add", {{rows, 4096}, {rows, 4096}}, "vectorized_elementwise_kernel");
      call("aten::mm", {{rows, 4096}, {4096, 8192}}, product_kernel);
    }
    return trace;
  };
  for (const sim::TracedOperator& each : sim::traced_operators(std::vector{read(written())}))
    seconds[each.shown] = sim::device_seconds(each, gpu, {});
  const WrittenTrace timed = written();
  write(folder_.path() / "timed.json", timed.text());
  const Outcome outcome = shell("\"$rehearse\" calibrate trace timed.json --from dgx-h100-ndr400 --gpu my.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NEAR(fitted("my.yaml", "efficiency.gemm.bf16.compute") / 0.55, 1, 0.03) << outcome.out;
  EXPECT_NEAR(fitted("my.yaml", "efficiency.memory_bound.memory") / 0.66, 1, 0.03) << outcome.out;
  EXPECT_EQ(fitted("my.yaml", "efficiency.gemm.fp8.compute"), -1) << "nothing of it was traced";
  EXPECT_NE(outcome.out.find("8 operators by their shapes compared"), std::string::npos) << outcome.out;
}

// Fifty kernels launched ahead, 2 us apart, and one that the host launches 500 us after the GPU was done.
TEST_F(RealTraces, TheHostsShareIsTold) {
  WrittenTrace trace;
  for (int i = 0; i < 50; ++i) trace.kernel("gemm", 100);
  sim::KinetoTrace read_back = read(trace);
  const sim::HostTimes ahead = sim::host_times({read_back});
  EXPECT_EQ(ahead.launches, 50);
  EXPECT_DOUBLE_EQ(ahead.launch_us, 4.5);
  EXPECT_EQ(ahead.gaps, 49);
  EXPECT_NEAR(ahead.gap_us, 2, 1e-6);
  EXPECT_EQ(ahead.waited_us, 0);
  sim::TraceKernel late = read_back.kernels.back();
  late.launched_us = late.end_us + 500;
  late.start_us = late.launched_us + 10;
  late.end_us = late.start_us + 100;
  read_back.kernels.push_back(late);
  EXPECT_NEAR(sim::host_times({read_back}).waited_us, 500, 1e-6);
}

TEST_F(RealTraces, EachMomentOfAGpuCountsOnce) {
  WrittenTrace trace;
  trace.kernel("gemm", 100);                                          // 1000 to 1100
  trace.communication("ncclDevKernel_AllGather_RING_LL", 1050, 150);  // 50 of it beside the product
  trace.wait(298);                                                    // 1400
  trace.kernel("gemm", 100);
  const sim::GpuTimes times = sim::gpu_times(read(trace));
  EXPECT_NEAR(times.computing_us, 200, 1e-6);
  EXPECT_NEAR(times.exchanging_us, 100, 1e-6);
  EXPECT_NEAR(times.idle_us, 200, 1e-6);
  EXPECT_EQ(times.copying_us, 0);
}

// The network of another cluster, from what its ranks saw of collectives.
TEST_F(RealTraces, CollectivesGiveTheNetworkBack) {
  write(folder_.path() / "job.yaml", small_job + "parallel: {tp: 2, dp: 8}\noptimizer: {sharding: zero1}\n");
  const std::string sets = " --set gpus=16 --set batch.global=16 --set simulation.ranks=all";
  ASSERT_EQ(shell("\"$rehearse\" simulate job.yaml --trace-per-rank t" + sets +
                  " --set cluster.nics.efficiency=0.5 --set cluster.intra_node.efficiency=0.6")
                .code,
            0);
  for (const std::string& how : {std::string("--from dgx-h100-ndr400"), "--job job.yaml" + sets}) {
    const Outcome outcome = shell("\"$rehearse\" calibrate trace t/rank0.json t/rank1.json t/rank8.json --cluster my.yaml " + how);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NEAR(fitted("my.yaml", "nics.efficiency") / 0.5, 1, 0.01) << how << outcome.out;
    EXPECT_NEAR(fitted("my.yaml", "intra_node.efficiency") / 0.6, 1, 0.01) << how << outcome.out;
  }
}

// A step's products as the job has them, under the names of libraries.
TEST_F(RealTraces, ProductsFindTheirPlacesInTheStep) {
  ASSERT_EQ(shell("\"$rehearse\" simulate job.yaml --trace-per-rank t --set cluster.gpu.efficiency.gemm.bf16.compute=0.5").code, 0);
  const sim::KinetoTrace simulated = sim::read_kineto((folder_.path() / "t/rank0.json").string());
  WrittenTrace trace;
  for (const sim::TraceKernel& each : simulated.kernels) {
    const bool product = each.cls == sim::KernelClass::product;
    trace.kernel(product ? "nvjet_hsh_256x128_64x4" : "triton_poi_fused", each.end_us - each.start_us);
  }
  write(folder_.path() / "renamed.json", trace.text());
  const Outcome outcome = shell("\"$rehearse\" calibrate trace renamed.json --job job.yaml --gpu my.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("products by their places"), std::string::npos) << outcome.out;
  EXPECT_NEAR(fitted("my.yaml", "efficiency.gemm.bf16.compute") / 0.5, 1, 0.05) << outcome.out;
}

// Groups that no ranks can form, numbers that are none, kernels that take nothing.
TEST_F(RealTraces, WhatMakesNoSenseIsLeftOut) {
  WrittenTrace trace;
  const auto call = [&](const std::string& members, double duration_us) {
    trace.communication("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", trace.now_us(), duration_us,
                        fmt::format(R"(,"Collective name":"allreduce","In msg nelems":1000000,"Out msg nelems":1000000,"Group size":4,)"
                                    R"("dtype":"BFloat16","Process Group Ranks":"{}")",
                                    members));
    trace.wait(1000);
  };
  for (const char* members : {"[0, 0, 0, 0]", "[3, 2, 1, 0]", "[0, 1000000000, ...]", "[0, 99999999999999999999, 3, 4]", "[0, 1]", ""})
    call(members, 100);
  call("[0, 1, 2, 3]", 0);
  EXPECT_TRUE(sim::traced_collectives({read(trace)}).measured.empty());
  call("[0, 2, ...]", 100);
  const sim::TracedCollectives found = sim::traced_collectives({read(trace)});
  ASSERT_EQ(found.measured.size(), 1U);
  EXPECT_EQ(found.measured.front().members, (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(found.measured.front().gpus, 7);
  EXPECT_TRUE(found.of_one_rank);
  write(folder_.path() / "one.json", trace.text(3, 8));
  const Outcome twice = shell("\"$rehearse\" calibrate trace one.json one.json --from dgx-h100-ndr400");
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("another trace of rank 3"), std::string::npos) << twice.err;
  WrittenTrace still;
  still.kernel("gemm", 0);
  write(folder_.path() / "still.json", still.text());
  EXPECT_NE(shell("\"$rehearse\" calibrate trace still.json").err.find("no kernel that takes time"), std::string::npos);
}

TEST_F(RealTraces, WhatTheyDoNotTellIsRefused) {
  WrittenTrace trace;
  trace.kernel("gemm", 100);
  write(folder_.path() / "bare.json", trace.text());
  for (const auto& [options, says] :
       {std::pair("--gpu my.yaml", "needs a cluster to begin with"), std::pair("--software my.yaml", "needs the job"),
        std::pair("--from dgx-h100-ndr400 --gpu my.yaml", "tell no shapes"),
        std::pair("--from dgx-h100-ndr400 --cluster my.yaml", "no collective"),
        std::pair("--from dgx-h100 --gpu my.yaml", "tell no shapes"), std::pair("--job job.yaml --cluster my.yaml", "no collective"),
        std::pair("--job job.yaml --from dgx-h100-ndr400", "nothing to do with"), std::pair("--set gpus=8", "nothing to do with"),
        std::pair("--job job.yaml --stack megatron-lm", "nothing to do with")}) {
    const Outcome outcome = shell(std::string("\"$rehearse\" calibrate trace bare.json ") + options);
    EXPECT_EQ(outcome.code, 2) << options;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << options << ": " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "my.yaml")) << options;
  }
}

}  // namespace
}  // namespace rehearse::calibrate::testing
