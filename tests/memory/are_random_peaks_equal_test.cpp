// Formula and timeline hold the same peak of memory on random jobs, at every granularity: every schedule, sharding, recomputation, offload,
// context parallelism and experts.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "sim/engine/simulate.hpp"
#include "sim/memory/predicted.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {
namespace {

constexpr double peak_rounding = 1e-12;  // sums of the same doubles in another order

// A stage's formula stands for the fullest of its ranks.
std::vector<double> fullest_of_stages(const sim::MemoryResult& memory, int stages) {
  std::vector<double> fullest(static_cast<std::size_t>(stages));
  for (const sim::RankMemory& rank : memory.ranks) {
    double& most = fullest[static_cast<std::size_t>(rank.stage)];
    most = std::max(most, rank.peak_bytes());
  }
  return fullest;
}

void expect_equal_peaks(const std::string& text) {
  const sim::Job job = job_of(text);
  const int stages = job.workload.parallel.pp;
  const std::vector<double> formula = fullest_of_stages(sim::predicted_memory(job), stages);
  const std::vector<double> timeline = fullest_of_stages(sim::critical_path(job).result.memory, stages);
  for (std::size_t s = 0; s < formula.size(); ++s) {
    EXPECT_NEAR(timeline[s], formula[s], peak_rounding * formula[s]) << "stage " << s << " of " << text;
  }
}

TEST(RandomPeaks, AreEqualByFormulaAndOnTheTimeline) {
  RandomJobs jobs(17);
  for (int i = 0; i < 300; ++i) {
    const std::string text = jobs.next();
    const char* granularities[] = {"stage", "layer", "operator"};
    expect_equal_peaks(fmt::format("{}, granularity: {}}}\n", text, granularities[i % 3]));
  }
}

// Where units leave something behind their backward, and the root's unit stays gathered, also slot by slot.
TEST(RandomPeaks, AreEqualWithAdaptersUnderFsdp) {
  std::mt19937 random(7);
  const auto pick = [&random](auto... from) { return std::array{from...}[random() % sizeof...(from)]; };
  for (int i = 0; i < 60; ++i) {
    const int pp = pick(1, 1, 2), dp = pick(1, 2, 4), microbatches = pick(1, 2, 3);
    const char *held = pick("true", "true", "false"), *kept = pick("true", "false"), *root = pick("true", "false");
    const std::string text = fmt::format(
        "model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: swiglu, vocab: {}, positions: rope}}\n"
        "cluster: dgx-h100-ndr400\ngpus: {}\nparallel: {{tp: 1, pp: {}, dp: {}}}\nbatch: {{global: {}, micro: 1, sequence: {}}}\n"
        "precision: bf16\nrecompute: {}\noptimizer: {{sharding: {}}}\nlora: {{rank: 8, dropout: 0.1{}}}\n"
        "software: {{like: peft-fsdp, memory: {{frozen_inputs: {}, outputs_kept: {}}}, root_unit: {}}}\nsimulation: {{granularity: {}}}\n",
        pick(0, 32000, 128000), pp * dp, pp, dp, microbatches * dp, pick(1024, 4096), pick("none", "full", "full"), pick("none", "zero3"),
        pick("", ", base: nf4"), held, kept, root, pick("stage", "layer", "operator"));
    expect_equal_peaks(text);
    const sim::Job job = job_of(text);
    const workloads::Compiled compiled = workloads::compile(job.workload);
    EXPECT_EQ(fullest_of_stages(sim::predicted_memory(job, compiled, true), pp),
              fullest_of_stages(sim::predicted_memory(job, compiled, false), pp))
        << text;
  }
}

// Where one micro-batch makes its gradients anew, under autocast and with FSDP2's buffers, also on one GPU.
TEST(RandomPeaks, AreEqualWithGradientsMadeAnew) {
  std::mt19937 random(5);
  const auto pick = [&random](auto... from) { return std::array{from...}[random() % sizeof...(from)]; };
  for (int i = 0; i < 60; ++i) {
    const int pp = pick(1, 1, 2), dp = pick(1, 2, 4), microbatches = pick(1, 1, 2);
    const bool moe = pick(false, false, true);
    expect_equal_peaks(fmt::format(
        "model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: swiglu, vocab: {}, positions: rope{}}}\n"
        "cluster: dgx-h100-ndr400\ngpus: {}\nparallel: {{tp: 1, pp: {}, dp: {}}}\nbatch: {{global: {}, micro: 1, sequence: {}}}\n"
        "precision: bf16\nrecompute: {}\noptimizer: {{sharding: {}}}\nsoftware: {}\nsimulation: {{granularity: {}}}\n",
        pick(0, 32000, 128000), moe ? ", moe: {experts: 8, top_k: 2, ffn: 512}" : "", pp * dp, pp, dp, microbatches * dp, pick(1024, 4096),
        pick("none", "full", "selective"), pick("none", "zero1", "zero2", "zero3"), pick("pytorch", "pytorch-compile", "torch-fsdp"),
        pick("stage", "layer", "operator")));
  }
}

// DeepSpeed's ZeRO: its buckets and gathered parameters, and an update that copies gradients, which small models and large vocabularies
// make the peak.
TEST(RandomPeaks, AreEqualWithDeepSpeed) {
  std::mt19937 random(7);
  const auto pick = [&random](auto... from) { return std::array{from...}[random() % sizeof...(from)]; };
  int updates = 0;
  for (int i = 0; i < 60; ++i) {
    const int pp = pick(1, 1, 2), dp = pick(1, 2, 4), microbatches = pick(1, 1, 2);
    const bool moe = pick(false, false, true);
    const std::string text = fmt::format(
        "model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: swiglu, vocab: {}, positions: rope{}}}\n"
        "cluster: dgx-h100-ndr400\ngpus: {}\nparallel: {{tp: 1, pp: {}, dp: {}}}\nbatch: {{global: {}, micro: 1, sequence: {}}}\n"
        "precision: bf16\nrecompute: {}\noptimizer: {{sharding: {}}}\n"
        "software: {{like: deepspeed-2025, memory: {{buckets: {}, zero3_buckets: 1 MB}}}}\nsimulation: {{granularity: {}}}\n",
        pick(0, 32000, 128000), moe ? ", moe: {experts: 8, top_k: 2, ffn: 512}" : "", pp * dp, pp, dp, microbatches * dp, pick(256, 4096),
        pick("none", "full"), pick("none", "zero1", "zero2", "zero3"), pick("2 MB", "2 GB"), pick("stage", "layer", "operator"));
    expect_equal_peaks(text);
    const sim::MemoryResult formula = sim::predicted_memory(sim::read_job(config::Node::load_text(text, "deepspeed.yaml"), "deepspeed"));
    updates += formula.fullest()->operation == "optimizer" ? 1 : 0;
  }
  EXPECT_GT(updates, 5);
  EXPECT_LT(updates, 55);
}

// Where gradients are added up behind a micro-batch's backward, and the update gathers weights through copies (nanotron); by slots, too.
// Small micro-batches have more gradients than activations, so that the peak is where a backward ends.
TEST(RandomPeaks, AreEqualWhereGradientsAreAddedUpAfterBackward) {
  std::mt19937 random(13);
  const auto pick = [&random](auto... from) { return std::array{from...}[random() % sizeof...(from)]; };
  int at_the_end = 0;
  for (int i = 0; i < 60; ++i) {
    const int pp = pick(1, 2, 4), dp = pick(1, 2, 4), microbatches = pick(4, 8), layers = pick(4, 8);
    const std::string text = fmt::format(
        "model: {{layers: {}, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: swiglu, vocab: {}, positions: rope}}\n"
        "cluster: dgx-h100-ndr400\ngpus: {}\nparallel: {{tp: 1, pp: {}, dp: {}}}\nbatch: {{global: {}, micro: 1, sequence: {}}}\n"
        "precision: bf16\nschedule: {}\noptimizer: {{sharding: {}}}\nsoftware: nanotron\nsimulation: {{granularity: {}}}\n",
        layers, pick(0, 32000), pp * dp, pp, dp, microbatches * dp, pick(64, 1024, 4096), pick("1f1b", "gpipe", "zb-h1"),
        dp > 1 ? pick("none", "zero1") : "none", pick("stage", "layer", "operator"));
    expect_equal_peaks(text);
    const sim::Job job = job_of(text);
    const workloads::Compiled compiled = workloads::compile(job.workload);
    const sim::MemoryResult slots = sim::predicted_memory(job, compiled, true), turns = sim::predicted_memory(job, compiled, false);
    for (std::size_t r = 0; r < slots.ranks.size(); ++r) {
      EXPECT_EQ(slots.ranks[r].peak_bytes(), turns.ranks[r].peak_bytes()) << text;
      EXPECT_EQ(slots.ranks[r].operation, turns.ranks[r].operation) << text;
    }
    const std::string& where = turns.ranks.front().operation;
    at_the_end += where == "B embedding" || where == "W embedding" || where == "B layer 0" || where == "W layer 0" ? 1 : 0;
  }
  EXPECT_GT(at_the_end, 5);
  EXPECT_LT(at_the_end, 55);
}

// Where a compiler plans the buffers of the step (maxtext).
TEST(RandomPeaks, AreEqualWhereBuffersArePlanned) {
  std::mt19937 random(11);
  const auto pick = [&random](auto... from) { return std::array{from...}[random() % sizeof...(from)]; };
  for (int i = 0; i < 40; ++i) {
    const int tp = pick(1, 1, 2), dp = pick(2, 4), microbatches = pick(1, 2);
    expect_equal_peaks(fmt::format(
        "model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 4, ffn: 4096, activation: swiglu, vocab: {}, positions: rope{}}}\n"
        "cluster: dgx-h100-ndr400\ngpus: {}\nparallel: {{tp: {}, pp: 1, dp: {}, sp: {}}}\nbatch: {{global: {}, micro: 1, sequence: {}}}\n"
        "precision: bf16\nrecompute: {}\noptimizer: {{sharding: {}}}\nsoftware: maxtext\nsimulation: {{granularity: {}}}\n",
        pick(0, 32000), pick("", ", moe: {experts: 8, top_k: 2, ffn: 512}"), tp * dp, tp, dp, tp > 1, microbatches * dp, pick(1024, 4096),
        pick("none", "full", "{kept: [linear_qkv]}"), pick("zero1", "zero3"), pick("stage", "layer", "operator")));
  }
}

}  // namespace
}  // namespace rehearse::tests
