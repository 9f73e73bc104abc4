// Every memory feature, alone and with others, on uniform dense jobs: the simulated step is within 2 % of the analytic one and the peak of
// memory within 1 % (together: 5 %), what is hidden costs nothing, and more contention never shortens a step.
#include <gtest/gtest.h>

#include <random>

#include "../engine/jobs.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

constexpr double alone = 0.02, together = 0.05, memory_bound = 0.01;

void expect_agreement(const sim::Job& job, const std::string& what, double bound = alone) {
  const sim::StepResult analytic = sim::predict(job);
  const sim::StepResult simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.step_s, analytic.step_s, bound * analytic.step_s)
      << what << ": " << 100 * (simulated.step_s / analytic.step_s - 1) << " %";
  EXPECT_NEAR(simulated.mean.total(), simulated.step_s, 1e-9 * simulated.step_s) << what;
  for (const sim::RankMemory& rank : simulated.memory.ranks) {
    const sim::RankMemory& stage = analytic.memory.ranks.at(static_cast<std::size_t>(rank.stage));
    EXPECT_LE(rank.peak_bytes(), stage.peak_bytes() * (1 + 1e-12)) << what << ", stage " << rank.stage;
    // A GPipe stage waits between its last forward and its first backward: the last layer on its way out is gone by then (docs/memory.md).
    const double layer_out =
        job.workload.schedule == "gpipe" && job.workload.offload_activations ? workloads::layer_activation_bytes(job.workload, false) : 0;
    EXPECT_GE(rank.peak_bytes(), stage.peak_bytes() * (1 - memory_bound) - layer_out) << what << ", stage " << rank.stage;
    EXPECT_NEAR(rank.host_bytes, stage.host_bytes, memory_bound * stage.host_bytes) << what << ", stage " << rank.stage;
  }
}

sim::Job with_host_rate(sim::Job job, double bytes_per_s) {
  job.system.cluster.host.bandwidth_bytes_per_s = bytes_per_s;
  return job;
}

struct Pipeline {
  const char* parallel;
  const char* schedule;
};
constexpr Pipeline pipelines[] = {{"{pp: 1}", "1f1b"},         {"{pp: 4}", "1f1b"},
                                  {"{pp: 4}", "gpipe"},        {"{pp: 4, vpp: 2}", "interleaved-1f1b"},
                                  {"{tp: 2, pp: 4}", "zb-h1"}, {"{pp: 4}", "zb-h2"}};

sim::Job offloading(const Pipeline& pipeline, const std::string& extra = "") {
  const std::string text = fmt::format("schedule: {}\noffload: {{activations: true}}\n{}", pipeline.schedule, extra);
  return small_job(8, pipeline.parallel, "{global: 64, micro: 2, sequence: 4096}", text, 8, 32);
}

// From copies that nothing waits for to such that take longer than a layer's backward.
TEST(EachFeatureAlone, OffloadWithFastAndSlowLinks) {
  for (const Pipeline& pipeline : pipelines) {
    for (const double rate : {400e9, 120e9, 60e9, 30e9}) {
      expect_agreement(with_host_rate(offloading(pipeline), rate),
                       fmt::format("{} {} at {} GB/s", pipeline.schedule, pipeline.parallel, rate / 1e9));
    }
  }
}

TEST(EachFeatureAlone, OffloadWithContention) {
  for (const Pipeline& pipeline : pipelines) {
    for (const double rate : {200e9, 60e9}) {
      sim::Job job = with_host_rate(offloading(pipeline), rate);
      job.system.gpu.contention[sim::Phase::offload] = {1.2, 1.3};
      expect_agreement(job, fmt::format("{} {} at {} GB/s", pipeline.schedule, pipeline.parallel, rate / 1e9));
    }
  }
}

// Links that GPUs share: as many copies at once as there are sharers, whether they are simulated or folded away.
TEST(EachFeatureAlone, OffloadOverSharedLinks) {
  for (const char* ranks : {"folded", "all"}) {
    sim::Job job = offloading(pipelines[1], fmt::format("simulation: {{ranks: {}}}", ranks));
    job.system.cluster.gpus_per_host_link = 2;
    expect_agreement(with_host_rate(job, 60e9), ranks);
  }
}

// Copies that take no time, and none that anybody waits for: nothing is exposed, and the step is that of the job without offload.
TEST(EachFeatureAlone, HiddenOffloadCostsNothing) {
  for (const Pipeline& pipeline : pipelines) {
    sim::Job job = with_host_rate(offloading(pipeline), 1e12);
    job.system.cluster.host.latency_s = 0;
    sim::Job without = job;
    without.workload.offload_activations = false;
    const double step = sim::simulate_in_child(without).step_s;
    const sim::StepResult offloaded = sim::simulate_in_child(job);
    EXPECT_NEAR(offloaded.step_s, step, 1e-9 * step) << pipeline.schedule;
    EXPECT_NEAR(offloaded.mean[sim::Phase::offload], 0, 1e-9 * step) << pipeline.schedule;
    EXPECT_NEAR(sim::predict(job).step_s, sim::critical_path(job).result.step_s, 1e-9 * step) << pipeline.schedule;
  }
}

// About two layers' activations stay, as many as there are layers between a forward and its backward on the host.
TEST(EachFeatureAlone, OffloadMovesActivationsToTheHost) {
  const sim::Job job = offloading(pipelines[1]);
  sim::Job without = job;
  without.workload.offload_activations = false;
  const double layer = workloads::layer_activation_bytes(job.workload, false);
  const auto moved = sim::predict(job).memory.ranks, kept = sim::predict(without).memory.ranks;
  for (std::size_t s = 0; s < moved.size(); ++s) {
    EXPECT_LE(moved[s].at_peak[sim::MemoryUse::activations], 3 * layer);
    EXPECT_EQ(kept[s].host_bytes, 0);
    // Of (4 - s) x 8 layers in flight those stay that are at hand, on their way out or on their way in.
    const double in_flight = static_cast<double>(4 - s) * 8;
    EXPECT_GE(moved[s].host_bytes, (in_flight - 3) * layer) << s;
    EXPECT_LE(moved[s].host_bytes, in_flight * layer) << s;
  }
}

TEST(EachFeatureAlone, AHostThatIsTooSmallIsSaid) {
  sim::Job job = offloading(pipelines[1]);
  EXPECT_TRUE(sim::predict(job).memory.host.fits());
  job.system.cluster.host_memory.bytes = 1e9;
  const sim::MemoryResult memory = sim::predict(job).memory;
  EXPECT_FALSE(memory.fits());
  // Two replicas of four stages on the node's 8 GPUs.
  double expected = 0;
  for (const sim::RankMemory& rank : memory.ranks) expected += 2 * rank.host_bytes;
  EXPECT_NEAR(memory.host.bytes, expected, 1e-12 * expected);
}

// Equations (27) and (28): no states on the GPU; gradients down, update, weights up, one after another.
TEST(EachFeatureAlone, OptimizerOnTheHost) {
  for (const char* sharding : {"none", "zero1", "zero3"}) {
    for (const char* ranks : {"folded", "all"}) {
      const std::string extra = fmt::format(
          "optimizer: {{device: cpu, sharding: {}}}\nsimulation: {{ranks: {}}}\noverlap: {{dp_parameters: false}}", sharding, ranks);
      expect_agreement(small_job(8, "{tp: 2, dp: 4}", "{global: 32, micro: 1, sequence: 4096}", extra), extra);
    }
  }
  const sim::Job job = small_job(8, "{tp: 1, dp: 8}", "{global: 8, micro: 1, sequence: 1024}", "optimizer: {device: cpu}");
  sim::Job on_gpu = job;
  on_gpu.workload.optimizer.on_cpu = false;
  const double parameters = 8 * workloads::layer_program(job.workload, false).parameters;
  const sim::StepResult host = sim::predict(job), gpu = sim::predict(on_gpu);
  EXPECT_EQ(host.memory.ranks[0].at_peak[sim::MemoryUse::optimizer], 0);
  EXPECT_NEAR(host.memory.ranks[0].host_bytes, (12 + 4 + 2) * parameters, 1e-12 * parameters);
  // Beside clipping, which stays on the GPU: 4 bytes down and 2 up at 20 GB/s, 4 + 24 + 2 at an eighth of 200 GB/s, two latencies; and
  // without the GPU's own 30 bytes at 0.8 of 2000 GB/s and the gap after that kernel.
  const double expected = parameters * (6 / 20e9 + 30 / 25e9 - 30 / 1600e9) + 2 * 10e-6 - job.system.software.launch_s;
  EXPECT_NEAR(host.mean[sim::Phase::optimizer] - gpu.mean[sim::Phase::optimizer], expected, 1e-9 * expected);
  EXPECT_NEAR(sim::simulate_in_child(job).mean[sim::Phase::optimizer], host.mean[sim::Phase::optimizer], 1e-6 * expected);
  // A stack that reaches a quarter of the host memory's rate is four times as long at those 30 bytes.
  const std::string slow = "optimizer: {device: cpu}\nsoftware: {like: megatron-core, host_update: 0.25}";
  const sim::Job slower = small_job(8, "{tp: 1, dp: 8}", "{global: 8, micro: 1, sequence: 1024}", slow);
  EXPECT_NEAR(sim::predict(slower).mean[sim::Phase::optimizer] - host.mean[sim::Phase::optimizer], parameters * 90 / 25e9, 1e-9 * expected);
}

sim::Job with_weights_on_host(bool there, const std::string& rest, const std::string& parallel = "{dp: 8}") {
  const std::string extra = fmt::format("optimizer: {{device: cpu, sharding: zero3}}\noffload: {{weights: {}}}\n{}", there, rest);
  return small_job(8, parallel, "{global: 16, micro: 1, sequence: 4096}", extra);
}

TEST(EachFeatureAlone, WeightsOnTheHost) {
  for (const char* parallel : {"{dp: 8}", "{tp: 2, dp: 4}", "{pp: 2, dp: 4}", "{tp: 8}", "{tp: 2, pp: 4}"}) {
    for (const char* overlap : {"{dp_gradients: true, dp_parameters: true}", "{dp_parameters: false}"}) {
      for (const char* ranks : {"folded", "all"}) {
        const std::string rest = fmt::format("overlap: {}\nsimulation: {{ranks: {}}}", overlap, ranks);
        expect_agreement(with_weights_on_host(true, rest, parallel), fmt::format("{} {}", parallel, rest));
      }
    }
  }
}

// Before each of 2 micro-batches' 16 gathers, of 8 layers forward and backward, a rank's eighth of a layer in 2 bytes comes at 20 GB/s
// after 10 us; after the update nothing does. The GPU holds no shard; the host had room for the new weights before.
TEST(EachFeatureAlone, WeightsOnTheHostComeUpBeforeEachGather) {
  const std::string exposed = "overlap: {dp_parameters: false}";
  const sim::Job job = with_weights_on_host(true, exposed);
  const double shard = 2 * 8 * workloads::layer_program(job.workload, false).parameters / 8;
  const sim::StepResult host = sim::predict(job), gpu = sim::predict(with_weights_on_host(false, exposed));
  const double copies = 4 * shard / 20e9 + 32 * 10e-6, up = shard / 20e9 + 10e-6;
  EXPECT_NEAR(host.mean[sim::Phase::dp] - gpu.mean[sim::Phase::dp], copies, 1e-9 * copies);
  EXPECT_NEAR(gpu.mean[sim::Phase::optimizer] - host.mean[sim::Phase::optimizer], up, 1e-9 * up);
  EXPECT_NEAR(gpu.memory.ranks[0].peak_bytes() - host.memory.ranks[0].peak_bytes(), shard, 1e-9 * shard);
  EXPECT_EQ(gpu.memory.ranks[0].host_bytes, host.memory.ranks[0].host_bytes);
  const sim::StepResult simulated = sim::simulate_in_child(job);
  EXPECT_NEAR(simulated.mean[sim::Phase::dp], host.mean[sim::Phase::dp], 1e-3 * host.mean[sim::Phase::dp]);
}

// One replica exchanges with nobody: of 16 micro-batches' 16 gathers each there is the copy of all that a GPU has of a layer.
TEST(EachFeatureAlone, WeightsOfOneReplicaOnTheHost) {
  const std::string exposed = "overlap: {dp_parameters: false}";
  const sim::Job job = with_weights_on_host(true, exposed, "{tp: 8}");
  const double weights = 2 * 8 * workloads::layer_program(job.workload, false).parameters;
  const sim::StepResult host = sim::predict(job), gpu = sim::predict(with_weights_on_host(false, exposed, "{tp: 8}"));
  const double copies = 32 * weights / 20e9 + 256 * 10e-6;
  EXPECT_EQ(gpu.mean[sim::Phase::dp], 0);
  EXPECT_NEAR(host.mean[sim::Phase::dp], copies, 1e-9 * copies);
  EXPECT_LT(host.memory.ranks[0].peak_bytes(), gpu.memory.ranks[0].peak_bytes());
}

// Sharded inside a node, copies across nodes.
TEST(EachFeatureAlone, HybridSharding) {
  for (const char* sharding : {"zero1", "zero2", "zero3"}) {
    for (const int group : {1, 2, 8, 16, 32}) {
      for (const char* overlap : {"{}", "{dp_gradients: true, dp_parameters: true}"}) {
        const std::string extra = fmt::format("optimizer: {{sharding: {}, shard_group: {}}}\noverlap: {}", sharding, group, overlap);
        expect_agreement(small_job(32, "{dp: 32}", "{global: 64, micro: 1, sequence: 4096}", extra), extra);
      }
    }
  }
}

// What is sharded over fewer ranks takes that much more memory; gathers stay inside the nodes.
TEST(EachFeatureAlone, HybridShardingTradesMemoryForTraffic) {
  const auto job = [](int group) {
    return small_job(32, "{dp: 32}", "{global: 32, micro: 1, sequence: 4096}",
                     fmt::format("optimizer: {{sharding: zero3, shard_group: {}}}", group), 1);
  };
  const sim::StepResult whole = sim::predict(job(32)), node = sim::predict(job(8));
  EXPECT_NEAR(node.memory.ranks[0].at_peak[sim::MemoryUse::optimizer], 4 * whole.memory.ranks[0].at_peak[sim::MemoryUse::optimizer], 1);
  // Over the one NIC of a node: per parameter 2 + 2 + 4 bytes gathered and reduced, against 2 x 3/4 x 4 of the all-reduce among nodes.
  EXPECT_LT(node.mean[sim::Phase::dp], whole.mean[sim::Phase::dp]);
}

TEST(EachFeatureAlone, ContextParallelismOfEveryKind) {
  for (const char* comm : {"ring", "all-gather", "all-to-all"}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const char* parallel : {"cp: 4, dp: 2", "tp: 2, cp: 2, pp: 2", "cp: 8"}) {
        for (const char* ranks : {"folded", "all"}) {
          const std::string text = fmt::format("{{{}, cp_comm: {}}}", parallel, comm);
          expect_agreement(small_job(8, text, "{global: 8, micro: 1, sequence: 8192}",
                                     fmt::format("recompute: {}\nsimulation: {{ranks: {}}}", recompute, ranks)),
                           text + recompute + ranks);
        }
      }
    }
  }
}

// The same attention, whatever way the sequence comes together.
TEST(EachFeatureAlone, ContextParallelismOfEveryKindDoesTheSameWork) {
  const auto flops = [](const char* comm) {
    const sim::Job job = small_job(8, fmt::format("{{cp: 4, dp: 2, cp_comm: {}}}", comm), "{global: 8, micro: 1, sequence: 8192}");
    double sum = 0;
    for (const workloads::Item& item : workloads::layer_program(job.workload, false).forward) {
      if (const auto* op = std::get_if<workloads::Operator>(&item)) sum += op->flops;
      if (const auto* ring = std::get_if<workloads::RingAttention>(&item)) sum += 4 * ring->step.flops;
    }
    return sum;
  };
  EXPECT_NEAR(flops("all-gather"), flops("ring"), 1e-12 * flops("ring"));
  EXPECT_NEAR(flops("all-to-all"), flops("ring"), 1e-12 * flops("ring"));
}

// A ring whose blocks travel faster than a step of attention takes is hidden altogether.
TEST(EachFeatureAlone, HiddenRingAttentionCostsNothing) {
  sim::Job job = small_job(8, "{cp: 8}", "{global: 4, micro: 1, sequence: 65536}");
  for (const sim::StepResult& result : {sim::predict(job), sim::simulate_in_child(job)}) {
    EXPECT_NEAR(result.mean[sim::Phase::cp], 0, 1e-9 * result.step_s) << result.method;
  }
  job.workload.overlap.cp = false;
  EXPECT_GT(sim::predict(job).mean[sim::Phase::cp], 0);
}

TEST(SeveralFeatures, TogetherStayWithinFivePercent) {
  std::mt19937 random(23);
  const char* comms[] = {"ring", "all-gather", "all-to-all"};
  const char* shardings[] = {"none", "zero1", "zero2"};
  const char* recomputes[] = {"none", "selective", "full", "{full_layers: 2}", "{modules: [layernorm, mlp]}"};
  for (int i = 0; i < 40; ++i) {
    const auto flag = [&] { return random() % 2 == 0 ? "true" : "false"; };
    const int zero = static_cast<int>(random() % 3);
    const std::string group = zero > 0 && random() % 2 == 0 ? ", shard_group: 2" : "";
    const std::string parallel = fmt::format("{{tp: 2, cp: 2, pp: 2, sp: {}, cp_comm: {}}}", flag(), comms[random() % 3]);
    const std::string extra = fmt::format(
        "recompute: {}\noffload: {{activations: {}}}\noptimizer: {{sharding: {}{}, device: {}}}\noverlap: {{tp: {}, cp: {}, dp_gradients: "
        "{}}}",
        recomputes[random() % 5], flag(), shardings[zero], group, random() % 2 == 0 ? "gpu" : "cpu", flag(), flag(), flag());
    sim::Job job = small_job(16, parallel, "{global: 32, micro: 1, sequence: 8192}", extra, 8, 16);
    job.system.cluster.host.bandwidth_bytes_per_s = 60e9;
    expect_agreement(job, parallel + "\n" + extra, together);
  }
}

// Raising alpha or beta never shortens a step, whichever features are on.
TEST(MoreContention, NeverShortensAStep) {
  std::mt19937 random(17);
  std::uniform_real_distribution<double> coefficient(1, 1.6);
  const char* features[] = {"offload: {activations: true}", "overlap: {tp: true}", "overlap: {dp_gradients: true, dp_parameters: true}",
                            "overlap: {cp: true}"};
  for (int i = 0; i < 24; ++i) {
    const std::string extra = fmt::format("{}\noptimizer: {{sharding: {}}}", features[i % 4], i % 3 == 0 ? "zero1" : "none");
    sim::Job job = small_job(16, "{tp: 2, cp: 2, pp: 2, dp: 2}", "{global: 8, micro: 1, sequence: 4096}", extra);
    job.system.cluster.host.bandwidth_bytes_per_s = 50e9;
    constexpr std::array kinds{sim::Phase::tp, sim::Phase::cp, sim::Phase::pp, sim::Phase::dp, sim::Phase::offload};
    for (const sim::Phase kind : kinds) job.system.gpu.contention[kind] = {coefficient(random), coefficient(random)};
    const double before = sim::simulate_in_child(job).step_s, before_by_formula = sim::predict(job).step_s;
    sim::ContentionPair& raised = job.system.gpu.contention[kinds[random() % kinds.size()]];
    (random() % 2 == 0 ? raised.alpha : raised.beta) += 0.4;
    EXPECT_GE(sim::simulate_in_child(job).step_s, before * (1 - 1e-9)) << extra;
    EXPECT_GE(sim::predict(job).step_s, before_by_formula * (1 - 1e-12)) << extra;
  }
}

}  // namespace
}  // namespace rehearse::tests
