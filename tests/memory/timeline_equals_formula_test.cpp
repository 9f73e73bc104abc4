// The peak on the timeline equals the formula, whatever is switched on: both count the same tensors, one event by event in the times of the
// simulation, the other slot by slot. And both equal equations (4)-(6) written out by hand where everything is uniform.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../engine/random_jobs.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/memory/predicted.hpp"
#include "workloads/allocations.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::tests {
namespace {

// Sums of the same doubles in another order: 1e-12 of them.
constexpr double timeline_rounding = 1e-12;

void expect_equal_peaks(const sim::Job& job, const std::string& what) {
  const sim::MemoryResult formula = sim::predicted_memory(job);
  const sim::MemoryResult timeline = sim::critical_path(job).result.memory;
  ASSERT_FALSE(timeline.ranks.empty()) << what;
  for (const sim::RankMemory& rank : timeline.ranks) {
    const sim::RankMemory& stage = formula.ranks.at(static_cast<std::size_t>(rank.stage));
    EXPECT_NEAR(rank.peak_bytes(), stage.peak_bytes(), timeline_rounding * stage.peak_bytes()) << what << ", stage " << rank.stage;
    EXPECT_NEAR(rank.host_bytes, stage.host_bytes, timeline_rounding * stage.host_bytes) << what << ", stage " << rank.stage;
  }
}

// Where backwards are split, the embedding has nothing to do in their first half, and nothing is gathered for it.
TEST(TimelineEqualsFormula, WhereTheEmbeddingPassesNoGradientOn) {
  for (const char* schedule : {"zb-h1", "zb-h2"}) {
    const std::string extra = fmt::format("schedule: {}\noptimizer: {{sharding: zero3}}\noverlap: {{dp_parameters: true}}\n", schedule);
    sim::Job job = small_job(4, "{tp: 1, pp: 2}", "{global: 8, micro: 1, sequence: 1024}", extra, 8, 2);
    job.workload.model.vocab = 1000;
    expect_equal_peaks(job, schedule);
  }
}

TEST(TimelineEqualsFormula, ForEveryRecomputationAndShardingWithAndWithoutSequenceParallelism) {
  for (const char* recompute : {"none", "selective", "full", "{full_layers: 1}", "{modules: [layernorm]}",
                                "{kept: [linear_qkv, linear_fc2]}", "{modules: [core_attn, mlp]}", "{modules: [mlp_act]}"}) {
    for (const char* sharding : {"none", "zero1", "zero2", "zero3", "zero3, no_sync: true"}) {
      for (const char* sp : {"false", "true"}) {
        for (const char* overlap : {"{}", "{dp_gradients: true, dp_parameters: true}", "{pp: false}"}) {
          const std::string extra = fmt::format("recompute: {}\noptimizer: {{sharding: {}}}\noverlap: {}\n", recompute, sharding, overlap);
          expect_equal_peaks(small_job(8, fmt::format("{{tp: 2, pp: 2, sp: {}}}", sp), "{global: 16, micro: 2, sequence: 1024}", extra),
                             extra + "sp " + sp);
        }
      }
    }
  }
}

TEST(TimelineEqualsFormula, WhereLogitsAreComputedAgain) {
  for (const int pieces : {1, 4}) {
    for (const bool fused : {true, false}) {
      sim::Job job = small_job(4, "{pp: 2, dp: 2}", "{global: 8, micro: 1, sequence: 1024}", "optimizer: {sharding: zero1}\n");
      job.workload.fusions.remakes_logits = true;
      job.workload.fusions.loss_pieces = pieces;
      job.workload.fusions.cross_entropy = fused;
      expect_equal_peaks(job, fmt::format("{} pieces", pieces));
    }
  }
}

TEST(TimelineEqualsFormula, WithPiecesOfTheLossThatAreCompiledApart) {
  sim::Job job = small_job(4, "{pp: 2, dp: 2}", "{global: 8, micro: 1, sequence: 1024}", "optimizer: {sharding: zero1}\n");
  job.workload.fusions.loss_pieces = 4;
  job.system.software.memory.habits.pieces_apart = true;
  expect_equal_peaks(job, "apart");
}

// FSDP2 keeps the input of one reduction until that of the next is made: reductions that overlap hold no second one, where a stack without
// its copies has the gradients of two layers. Few tokens: gradients are the peak.
TEST(TimelineEqualsFormula, WithTheInputOfOneReductionAtATime) {
  const auto peak = [](const char* stack, const char* overlap) {
    const std::string extra = fmt::format("optimizer: {{sharding: zero3}}\nsoftware: {}\noverlap: {{dp_gradients: {}}}\n", stack, overlap);
    const sim::Job job = small_job(4, "{dp: 4}", "{global: 8, micro: 1, sequence: 16}", extra);
    expect_equal_peaks(job, extra);
    return sim::predicted_memory(job).ranks.front().peak_bytes();
  };
  EXPECT_EQ(peak("pytorch", "true"), peak("pytorch", "false"));
  EXPECT_GT(peak("torch-fsdp", "true"), peak("torch-fsdp", "false"));
}

TEST(TimelineEqualsFormula, WithShardedInputsOfRecomputedLayers) {
  for (const char* recompute : {"{shards_inputs: true}", "{full_layers: 1, shards_inputs: true}"}) {
    for (const char* granularity : {"stage", "layer", "operator"}) {
      const std::string extra = fmt::format("recompute: {}\nsimulation: {{granularity: {}}}\n", recompute, granularity);
      expect_equal_peaks(small_job(8, "{tp: 4, pp: 2}", "{global: 16, micro: 2, sequence: 1024}", extra), extra);
    }
  }
}

// The embedding has nothing to do in backward, and nothing is reduced but of layers.
TEST(TimelineEqualsFormula, ForAdapters) {
  for (const char* lora : {"{rank: 8, targets: [linear_qkv]}", "{rank: 8, dropout: 0.1}", "{rank: 8, base: nf4, weights: fp32}"}) {
    for (const char* schedule : {"1f1b", "zb-h1"}) {
      for (const char* sharding : {"none", "zero1", "zero2", "zero3", "zero3, no_sync: true"}) {
        for (const char* recompute : {"none", "full", "{modules: [mlp_act]}"}) {
          const std::string extra =
              fmt::format("lora: {}\nschedule: {}\noptimizer: {{sharding: {}}}\nrecompute: {}\n", lora, schedule, sharding, recompute);
          sim::Job job = small_job(8, "{tp: 2, pp: 2, sp: true}", "{global: 16, micro: 2, sequence: 1024}", extra);
          job.workload.model.vocab = 1000;
          expect_equal_peaks(job, extra);
        }
      }
    }
  }
}

// Adapters, modules, parts of inputs and functions of several operators as they meet.
TEST(TimelineEqualsFormula, ForRandomJobs) {
  RandomJobs jobs(41);
  for (int i = 0; i < 200; ++i) {
    const std::string text = jobs.next() + "}\n";
    expect_equal_peaks(job_of(text), text);
  }
}

TEST(TimelineEqualsFormula, ForEverySchedule) {
  for (const std::string& schedule : workloads::ScheduleRegistry::names()) {
    const workloads::Schedule& order = workloads::ScheduleRegistry::get(schedule);
    const int chunks = order.refusal({4, 1, 8}).empty() || order.mirrors() ? 1 : 2;
    const std::string parallel = fmt::format("{{pp: 4, vpp: {}}}", chunks);
    expect_equal_peaks(small_job(4, parallel, "{global: 8, micro: 1, sequence: 1024}", "schedule: " + schedule + "\n"), schedule);
  }
}

TEST(TimelineEqualsFormula, AtEveryGranularity) {
  for (const char* granularity : {"stage", "layer", "operator"}) {
    const std::string extra = fmt::format("simulation: {{granularity: {}}}\noptimizer: {{sharding: zero1}}\n", granularity);
    expect_equal_peaks(small_job(16, "{tp: 2, pp: 4, sp: true}", "{global: 16, micro: 1, sequence: 1024}", extra), granularity);
  }
}

TEST(TimelineEqualsFormula, WithOffloadOnEverySchedule) {
  for (const char* schedule : {"1f1b", "zb-h1", "zb-h2"}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const char* granularity : {"stage", "layer"}) {
        const std::string extra =
            fmt::format("schedule: {}\nrecompute: {}\noffload: {{activations: true}}\nsimulation: {{granularity: {}}}\n", schedule,
                        recompute, granularity);
        expect_equal_peaks(small_job(4, "{pp: 4}", "{global: 8, micro: 1, sequence: 4096}", extra, 8, 16), extra);
      }
    }
  }
}

TEST(TimelineEqualsFormula, WithOffloadChunkByChunkAndInPart) {
  for (const auto& [schedule, vpp] : {std::pair{"1f1b", 1}, {"gpipe", 1}, {"interleaved-1f1b", 2}}) {
    for (const char* share : {"1", "0.4"}) {
      const std::string extra =
          fmt::format("schedule: {}\nrecompute: selective\noffload: {{activations: true, share: {}}}\n", schedule, share);
      sim::Job job = small_job(4, fmt::format("{{pp: 4, vpp: {}}}", vpp), "{global: 8, micro: 1, sequence: 4096}", extra, 8, 16);
      expect_equal_peaks(job, extra);
      job.system.software.memory.habits.offloads_chunks = true;
      expect_equal_peaks(job, extra + "chunk by chunk");
    }
  }
}

// The embedding's turn without work counts where copies wait for turns, and what comes back takes the place of what has just left.
TEST(TimelineEqualsFormula, WithOffloadWhereTheEmbeddingPassesNoGradientOn) {
  for (const auto& [schedule, vpp] : {std::pair{"zb-h1", 1}, {"zb-h2", 1}, {"zb-v", 2}}) {
    for (const int layers : {4, 8, 12}) {
      for (const char* granularity : {"layer", "operator"}) {
        const std::string extra = fmt::format(
            "schedule: {}\nrecompute: selective\noffload: {{activations: true}}\noverlap: {{pp: false}}\nsimulation: {{granularity: {}}}\n",
            schedule, granularity);
        sim::Job job = small_job(2, fmt::format("{{pp: 2, vpp: {}}}", vpp), "{global: 8, micro: 1, sequence: 4096}", extra, 2, layers);
        job.workload.model.vocab = 1000;
        expect_equal_peaks(job, fmt::format("{}, {} layers", extra, layers));
      }
    }
  }
}

TEST(TimelineEqualsFormula, WithEveryKindOfContextParallelismAndHybridSharding) {
  for (const char* comm : {"ring", "all-gather", "all-to-all"}) {
    for (const char* sharding : {"zero1", "zero3"}) {
      const std::string extra = fmt::format("optimizer: {{sharding: {}, shard_group: 2}}\n", sharding);
      expect_equal_peaks(small_job(8, fmt::format("{{cp: 2, dp: 4, cp_comm: {}}}", comm), "{global: 8, micro: 1, sequence: 4096}", extra),
                         comm + extra);
    }
  }
}

// 1f1b, 8 equal layers without ends on 4 stages, 8 micro-batches, bf16 with fp32 gradients: stage s holds min(8, 4 - s) micro-batches of 2
// layers; backward of a layer works on the gradients of its input and output (2 s b h) and of the MLP's intermediate tensors (2 s b 4h),
// all in 2 bytes, while the next input or gradient (s b h, 2 bytes) arrives.
TEST(TimelineEqualsFormula, AndBothTheAlgebraOfAUniformPipeline) {
  const sim::Job job = small_job(4, "{pp: 4}", "{global: 8, micro: 1, sequence: 1024}");
  const double states = 2.0 * 1024 * 1024;
  const double layer = workloads::layer_program(job.workload, false).parameters;
  const double activations = workloads::layer_activation_bytes(job.workload, false);
  const double work = 2 * states + 2 * 4 * states;
  const sim::MemoryResult formula = sim::predicted_memory(job);
  for (int s = 0; s < 4; ++s) {
    const double in_flight = workloads::ScheduleRegistry::get("1f1b").peak_in_flight({4, 1, 8}, s);
    EXPECT_EQ(in_flight, std::min(8, 4 - s));
    const bool receives = s > 0 || in_flight > 1;
    const double expected =
        2 * layer * (2 + 4 + 12) + in_flight * 2 * activations + work + (receives ? states : 0) + 2 * 12.0 * 1024 * 1024;
    EXPECT_NEAR(formula.ranks[s].tensor_bytes(), expected, timeline_rounding * expected) << "stage " << s;
  }
  expect_equal_peaks(job, "uniform");
}

// What is taken is given back, class by class.
TEST(TimelineEqualsFormula, AndOnlyStaticMemoryRemainsAfterTheStep) {
  const sim::Job job =
      small_job(16, "{tp: 2, pp: 4, sp: true}", "{global: 16, micro: 1, sequence: 1024}", "optimizer: {sharding: zero3}\n");
  const sim::Timeline timeline = sim::critical_path(job).timeline;
  ASSERT_FALSE(timeline.ranks.empty());
  for (std::uint32_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const std::vector<sim::MemorySample> samples = timeline.events->memory_of(rank);
    ASSERT_GT(samples.size(), 10U);
    for (std::size_t use = 0; use < sim::memory_use_count; ++use) {
      double largest = 0;
      for (const sim::MemorySample& sample : samples) {
        largest = std::max(largest, sample.held.bytes[use]);
        EXPECT_GE(sample.held.bytes[use], -timeline_rounding * largest) << "use " << use;
      }
      EXPECT_NEAR(samples.back().held.bytes[use], samples.front().held.bytes[use], timeline_rounding * largest) << "use " << use;
    }
    EXPECT_GT(std::ranges::max_element(samples, {}, [](const auto& s) { return s.held.total(); })->held.total(),
              samples.front().held.total());
  }
}

// Equations (25) and (27): ZeRO-1 divides optimizer states by the replicas, an optimizer on the host leaves none on the GPU.
TEST(StaticMemory, IsShardedAsZeroSays) {
  sim::Job job = small_job(8, "{tp: 2}", "{global: 16, micro: 1, sequence: 1024}", "optimizer: {sharding: none}\n");
  const double n = 1e6;
  const auto held = [&](int zero) {
    job.workload.optimizer.zero_stage = zero;
    return workloads::static_memory(job.workload, {}, {.all = n});
  };
  EXPECT_EQ(held(0).total(), 18 * n);
  EXPECT_EQ(held(1).total(), (2 + 4 + 12.0 / 4) * n);
  EXPECT_EQ(held(2).total(), (2 + 16.0 / 4) * n);
  EXPECT_EQ(held(3).total(), 18.0 / 4 * n);
  job.workload.optimizer.shard_group = 2;
  EXPECT_EQ(held(3).total(), 18.0 / 2 * n);
  job.workload.optimizer.on_cpu = true;
  EXPECT_EQ(held(0).optimizer, 0);
  // Gradients add up beside the states where every micro-batch reduces them.
  EXPECT_EQ(held(1).gradients, 4 * n);
  EXPECT_EQ(held(2).gradients, 0);
  EXPECT_EQ(held(3).gradients, 0);
}

// Equations (33)-(35): with offload about two layers' activations stay, however many layers and micro-batches there are.
TEST(Offload, KeepsAboutTwoLayersActivations) {
  for (const int layers : {8, 16}) {
    sim::Job job = small_job(2, "{pp: 2}", "{global: 8, micro: 1, sequence: 1024}", "", 8, layers);
    job.workload.offload_activations = true;
    const double one = workloads::layer_activation_bytes(job.workload, false);
    for (const sim::RankMemory& stage : sim::predicted_memory(job).ranks) {
      EXPECT_GE(stage.at_peak[sim::MemoryUse::activations], one);
      EXPECT_LE(stage.at_peak[sim::MemoryUse::activations], 3 * one * (1 + timeline_rounding));  // leaving, at hand, coming back
    }
    expect_equal_peaks(job, "offload");
  }
}

// GPipe: eight micro-batches of eight layers in flight. What is offloaded stays of the chunk at hand, and of the one before it while the
// next forward runs; two buffers of a chunk are always there.
TEST(Offload, OfChunksKeepsTwoAndTheirBuffers) {
  for (const double share : {1.0, 0.5}) {
    sim::Job job = small_job(2, "{pp: 2}", "{global: 8, micro: 1, sequence: 1024}", "schedule: gpipe\n", 8, 16);
    job.workload.offload_activations = true;
    job.workload.offload_share = share;
    job.system.software.memory.habits.offloads_chunks = true;
    const double chunk = 8 * workloads::layer_activation_bytes(job.workload, false);
    for (const sim::RankMemory& stage : sim::predicted_memory(job).ranks) {
      const double stays = 8 * (1 - share) * chunk;
      EXPECT_GE(stage.at_peak[sim::MemoryUse::activations], stays + share * chunk);
      EXPECT_LE(stage.at_peak[sim::MemoryUse::activations], (stays + 2 * share * chunk) * (1 + timeline_rounding));
      EXPECT_GE(stage.at_peak[sim::MemoryUse::temporary], 2 * share * chunk);
    }
    expect_equal_peaks(job, "offload of chunks");
  }
}

}  // namespace
}  // namespace rehearse::tests
