// When a pass waits for the host that issues its kernels, and for what else.
#include <gtest/gtest.h>

#include <cmath>

#include "gpu_files.hpp"
#include "sim/cost/queue.hpp"
#include "sim/system.hpp"

namespace rehearse::sim::testing {
namespace {

// (D^4 + H^4)^(1/4) for a pass, shared by kernels: here D = 2 ms on the GPU and 1 ms of collectives, H = 4 ms for four launches.
TEST(QueuedSeconds, ShareWhatTheGpuWaitsForTheHost) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.issue_s = 1e-3;
  workloads::Operator op = moving(5e8);  // 1 ms
  const std::vector<workloads::Operator> queue{op, op};
  const double wait = std::pow(std::pow(3e-3, 4) + std::pow(4e-3, 4), 0.25) - 3e-3;
  software.issue_s -= gpu.launch_s;
  expect_same(queued_seconds(gpu, software, queue, queue, 1e-3, 2, 0), 2e-3 + wait);
  expect_same(queued_seconds(gpu, software, {&op, 1}, queue, 1e-3, 2, 0), 1e-3 + wait / 2);
}

// D: 1 ms alone, 3 ms for a product of 2 beside a call of 3, three pieces of 1 ms of which two run beside calls of 0.5: 3.5 ms, and a ring
// of four attentions of 1 ms with three transfers of 1.5: beside them 5.5, in turn 8.5. H: one kernel alone, a kernel and a call whole,
// three of each in pieces, ten of the ring (four kernels, three sends, three receives): nineteen times 0.5 or 1.5 ms, which in the pairs is
// longer than their products, and waited for once.
TEST(QueuedSeconds, CountWhatOverlapsForTheGpuAndForTheHost) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  workloads::PassQueue queue{{moving(5e8)}, {}};
  workloads::Communication longer, shorter, block;
  longer.bytes = 3e-3;
  shorter.bytes = 0.5e-3;
  block.bytes = 1.5e-3;
  block.kind = workloads::CollectiveKind::send_recv;
  const workloads::Operator whole = moving(10e8), piece = moving(5e8);
  const auto bytes_as_seconds = [](const workloads::Communication& call) { return call.bytes; };
  for (const double issue_s : {0.5e-3, 1.5e-3}) {
    for (const bool beside : {true, false}) {
      software.issue_s = issue_s - gpu.launch_s;
      queue.pairs = {{whole, longer}, {piece, shorter, 3, 3, 2}, {piece, block, 4, 3, beside ? 3 : 0}};
      const double device = 1e-3 + 3e-3 + 3.5e-3 + (beside ? 5.5e-3 : 8.5e-3), host = 19 * issue_s;
      const double wait = std::pow(std::pow(device, 4) + std::pow(host, 4), 0.25) - device;
      expect_same(queued_seconds(gpu, software, queue.operators, queue, 0, bytes_as_seconds), 1e-3 + wait);
    }
  }
}

// Four kernels of 2 ms on the host beside one of experts, which takes 1 there, or as much as the others where the stack says nothing of it.
// H = 8 ms + 1 (2), of which the kernel of experts waits for its part.
TEST(QueuedSeconds, HaveAHostTimeOfTheirOwnForExperts) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.issue_s = 2e-3 - gpu.launch_s;
  workloads::Operator dense = moving(5e8), routed = moving(5e8);  // 1 ms each
  dense.kernels = 4;
  routed.of_experts = true;
  const std::vector<workloads::Operator> queue{dense, routed};
  for (const double expert_s : {1e-3, 2e-3}) {
    if (expert_s < 2e-3)
      software.experts_issue_s = expert_s - gpu.launch_s;
    else
      software.experts_issue_s.reset();
    const double host = 8e-3 + expert_s, wait = std::pow(std::pow(2e-3, 4) + std::pow(host, 4), 0.25) - 2e-3;
    expect_same(queued_seconds(gpu, software, queue, queue, 0, 0, 0), 2e-3 + wait);
    expect_same(queued_seconds(gpu, software, {&routed, 1}, queue, 0, 0, 0), 1e-3 + wait * expert_s / host);
    expect_same(operator_seconds(gpu, software, routed), std::max(1e-3, expert_s));
    expect_same(operator_seconds(gpu, software, dense), 8e-3);
  }
}

// Two ranks of tp: every launch takes 2 x 0.5 ms more, once the pipeline leaves the node.
TEST(QueuedSeconds, WaitForTheNetworkInPipelinesOverNodes) {
  System system;
  system.gpu = gpu_with_gemm("{model: roofline}");
  system.software.issue_s = 1e-3 - system.gpu.launch_s;
  system.software.network_wait_s = 5e-4;
  system.cluster.gpus_per_node = 8;
  const workloads::PassQueue queue{{moving(5e8)}, {}};  // 1 ms
  const auto seconds = [&](int pp, int gpus) {
    workloads::Workload workload;
    workload.parallel.tp = 2;
    workload.parallel.pp = pp;
    workload.parallel.dp = gpus / (2 * pp);
    return queued_seconds(system.gpu, system.software, queue.operators, queue,
                          more_issue_s(system.gpu, system.software, system.cluster, workload), [](const auto&) { return 0.0; });
  };
  const auto both = [](double host_s) { return std::pow(std::pow(1e-3, 4) + std::pow(host_s, 4), 0.25); };
  expect_same(seconds(2, 16), both(2e-3));
  expect_same(seconds(2, 8), both(1e-3));
  expect_same(seconds(1, 16), both(1e-3));
  system.software.replays_graphs = true;
  expect_same(seconds(2, 16), 1e-3);
}

// DeepSpeed's hooks: ZeRO-3 alone has them, and the board's processor runs them as it runs the rest.
TEST(QueuedSeconds, WaitForTheHooksOfZero3) {
  System system;
  system.software.zero3_issue_s = 3e-4;
  workloads::Workload workload;
  for (const int stage : {0, 1, 2, 3}) {
    workload.optimizer.zero_stage = stage;
    EXPECT_EQ(more_issue_s(system.gpu, system.software, system.cluster, workload), stage == 3 ? 3e-4 : 0);
  }
  system.gpu.host_time = 1.5;
  EXPECT_DOUBLE_EQ(more_issue_s(system.gpu, system.software, system.cluster, workload), 4.5e-4);
  system.software.replays_graphs = true;
  EXPECT_EQ(more_issue_s(system.gpu, system.software, system.cluster, workload), 0);
}

// DTensor: every rank of tp runs its operators through it, one rank alone has plain tensors; beside the hooks of ZeRO-3.
TEST(QueuedSeconds, WaitForTensorsThatKnowHowTheyAreCut) {
  System system;
  system.software.tp_issue_s = 1e-5;
  system.software.zero3_issue_s = 4e-5;
  workloads::Workload workload;
  for (const int tp : {1, 2, 8}) {
    workload.parallel.tp = tp;
    EXPECT_EQ(more_issue_s(system.gpu, system.software, system.cluster, workload), tp > 1 ? 1e-5 : 0);
  }
  workload.optimizer.zero_stage = 3;
  system.gpu.host_time = 2;
  EXPECT_DOUBLE_EQ(more_issue_s(system.gpu, system.software, system.cluster, workload), 1e-4);
  system.software.replays_graphs = true;
  EXPECT_EQ(more_issue_s(system.gpu, system.software, system.cluster, workload), 0);
}

TEST(QueuedSeconds, OfReplayedGraphsAreTheGpus) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.launch_s = 1e-6;
  software.issue_s = 1e-3;
  software.replays_graphs = true;
  workloads::Operator op = moving(1e6);  // 2 us
  op.kernels = 3;
  expect_same(operator_seconds(gpu, software, op), 2e-6 + 3e-6);
  expect_same(queued_seconds(gpu, software, {&op, 1}, {&op, 1}, 1e-6, 1, 0), 2e-6 + 3e-6);
}

// CUDA_LAUNCH_BLOCKING: host and GPU take turns, D + H, shared by kernels; alone as well.
TEST(QueuedSeconds, AddTheHostsThatWaitsForEveryKernel) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.issue_s = 1e-3 - gpu.launch_s;
  software.launch_blocking = true;
  workloads::Operator op = moving(5e8);  // 1 ms
  const std::vector<workloads::Operator> queue{op, op};
  expect_same(queued_seconds(gpu, software, queue, queue, 1e-3, 2, 0), 2e-3 + 4e-3);
  expect_same(queued_seconds(gpu, software, {&op, 1}, queue, 1e-3, 2, 0), 1e-3 + 2e-3);
  expect_same(operator_seconds(gpu, software, op), 1e-3 + 1e-3);
}

TEST(QueuedSeconds, OfLongKernelsAreTheGpus) {
  const Gpu gpu = gpu_with_gemm("{model: roofline}");
  Software software;
  software.issue_s = 6e-6;
  const std::vector<workloads::Operator> queue{moving(1e9), moving(1)};  // 2 ms hide the launches of both
  EXPECT_NEAR(queued_seconds(gpu, software, queue, queue, 0, 0, 0), 2e-3, 1e-9 * 2e-3 + 1e-9);
}

}  // namespace
}  // namespace rehearse::sim::testing
