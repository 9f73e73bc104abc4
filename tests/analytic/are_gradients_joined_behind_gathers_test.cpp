// FSDP1 (flat_parameters): autograd joins a unit's gradients on the stream that gathers, behind the gather of the unit that backward comes
// to next; with joins_at_once when they are there.
#include <gtest/gtest.h>

#include <random>

#include "../engine/jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

constexpr double memory_bytes_per_s = 0.8 * 2000e9;       // of small_gpu()
constexpr double joined_bytes = 2 * 2 + (2 + 4) + 2 * 4;  // per parameter in 16 bits: joined, cast to FP32, divided

sim::Job flat(bool at_once, const std::string& batch, const std::string& extra = "", int nics = 1, const char* parallel = "{dp: 16}") {
  const std::string stack =
      fmt::format("software: {{like: megatron-core, launch: 0 us, issue: 0 us, flat_parameters: true, joins_at_once: {}}}\n", at_once);
  return small_job(16, parallel, batch,
                   "optimizer: {sharding: zero3}\noverlap: {dp_gradients: true, dp_parameters: true}\n" + stack + extra, nics);
}

// 64 positions on two nodes with a NIC each: the network is never done, a layer computes in no time, and what is joined while the next
// gather is under way costs nothing. Behind it the network waits, once for each layer but the first, behind whose backward nothing is
// gathered.
TEST(GradientsJoinedBehindGathers, LeaveTheNetworkIdle) {
  const std::string batch = "{global: 16, micro: 1, sequence: 64}";
  const sim::Job at_once = flat(true, batch), behind = flat(false, batch);
  const double copy_s = workloads::layer_program(behind.workload, false).parameters * joined_bytes / memory_bytes_per_s;
  const double later = sim::predict(behind).step_s - sim::predict(at_once).step_s;
  EXPECT_NEAR(later, (behind.workload.model.layers - 1) * copy_s, 1e-9 * later);
}

// Where gathers are there before they are waited for.
TEST(GradientsJoinedBehindGathers, CostNothingWhereComputationIsLonger) {
  const std::string batch = "{global: 16, micro: 1, sequence: 16384}";
  const double at_once = sim::predict(flat(true, batch, "", 8)).step_s;
  EXPECT_NEAR(sim::predict(flat(false, batch, "", 8)).step_s, at_once, 1e-9 * at_once);
}

// Nothing is gathered for backward, or nothing ahead of it.
TEST(GradientsJoinedBehindGathers, NeedGathersAhead) {
  const std::string batch = "{global: 16, micro: 1, sequence: 64}";
  for (const bool ahead : {true, false}) {
    sim::Job behind = flat(false, batch), at_once = flat(true, batch);
    for (sim::Job* job : {&behind, &at_once}) {
      job->workload.overlap.dp_parameters = ahead;
      if (ahead) job->workload.optimizer.zero_stage = 2;
    }
    EXPECT_EQ(sim::predict(behind).step_s, sim::predict(at_once).step_s) << ahead;
  }
}

// Without contention the formula is the longest path, with any micro-batches, recomputation, network and pipeline.
TEST(GradientsJoinedBehindGathers, AreTheLongestPath) {
  std::mt19937 random(1);
  for (int i = 0; i < 24; ++i) {
    const auto microbatches = 1 + random() % 3, sequence = 64UL << (2 * (random() % 4));
    const std::string batch = fmt::format("{{global: {}, micro: 1, sequence: {}}}", 16 * microbatches, sequence);
    const bool piped = i % 3 == 2;
    const std::string recompute = random() % 2 == 0 ? "recompute: none\n" : "recompute: full\n";
    const sim::Job job = flat(false, batch, recompute, random() % 2 == 0 ? 1 : 8, piped ? "{pp: 2, dp: 8}" : "{dp: 16}");
    const double longest = sim::critical_path(job).result.step_s;
    EXPECT_NEAR(sim::predict(job).step_s, longest, (piped ? 0.02 : 1e-9) * longest) << batch << " " << i;
  }
}

}  // namespace
}  // namespace rehearse::tests
