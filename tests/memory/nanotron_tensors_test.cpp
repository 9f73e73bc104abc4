// Does nanotron's order of tensors leave what its source keeps, and reserve what its runs reserved?
#include "sim/memory/nanotron_tensors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "followed_tensors.hpp"
#include "places.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/validate/measured_case.hpp"
#include "sim/validate/metric.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::tests {
namespace {

using sim::UnitTensors;

std::vector<sim::MeasuredCase> nanotron_runs() {
  return sim::read_cases({REHEARSE_SOURCE_DIR "/tests/measured/cases/nanotron-bench.yaml"});
}

// Per token and rank of tp, in 16 bits with as many key/value heads as heads: input, two norms and the residual stream between them (8 h),
// queries, keys, values and the context (8 h), joined keys and values (4 h), gate, up, silu and product (8 f), and the softmax's fp32 sum
// per head.
TEST(NanotronTensors, ALayerKeeps20HiddenAnd8IntermediateBytesPerToken) {
  int layers = 0;
  for (const sim::MeasuredCase& c : nanotron_runs()) {
    const sim::Job job = sim::read_job(c.job, c.id, c.models);
    const workloads::Shard s = workloads::shard_of(job.workload);
    if (s.query_width != s.kv_width || layers > 200) continue;
    const workloads::StageProgram stage = workloads::stage_programs(job.workload).front();
    for (const workloads::Unit& unit : stage.chunks[0]) {
      if (unit.kind != workloads::UnitKind::layer) continue;
      const UnitTensors tensors = sim::nanotron_tensors(job.workload, unit);
      std::map<int, double> live{{UnitTensors::input, 2.0 * static_cast<double>(s.spread_tokens * s.hidden)}};
      follow(tensors.forward, live);
      live.erase(UnitTensors::output);
      double bytes = 0;
      for (const auto& [tensor, size] : live) bytes += size;
      const auto per_token = static_cast<double>(8 * s.hidden / s.tp + 12 * s.query_width + 8 * s.ffn + 4 * s.heads);
      EXPECT_NEAR(bytes, per_token * static_cast<double>(s.tokens), 1e-9 * bytes) << c.id;
      live.emplace(UnitTensors::output_gradient, 0);
      follow(tensors.backward, live);
      live.erase(UnitTensors::input_gradient);
      EXPECT_TRUE(live.empty()) << c.id;
      ++layers;
    }
  }
  EXPECT_GT(layers, 100);
}

// Without tensor parallelism no block waits for a collective, and what the allocator reserves depends on the order alone. 3.5 %: 2.7 % when
// this was written (5.1 % before gradients lay until backward was over, and copies of the update were told from what is always there).
TEST(NanotronTensors, ReserveWhatRunsWithoutTensorParallelismDid) {
  double runs = 0, sum = 0;
  for (const sim::MeasuredCase& c : nanotron_runs()) {
    const auto measured = c.measured.find(sim::Metric::peak_memory_gib);
    if (measured == c.measured.end()) continue;
    const sim::Job job = sim::read_job(c.job, c.id, c.models);
    if (job.workload.parallel.tp != 1) continue;
    const double error =
        sim::Predicted(job).metrics({{sim::Metric::peak_memory_gib, 0.0}}, c.memory).at(sim::Metric::peak_memory_gib) / measured->second -
        1;
    sum += std::abs(error);
    ++runs;
  }
  EXPECT_GT(runs, 50);
  fmt::print("{} runs, mean error {:.1f} %\n", runs, 100 * sum / runs);
  EXPECT_LT(sum / runs, 0.035);
}

}  // namespace
}  // namespace rehearse::tests
