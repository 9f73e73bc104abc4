// Limits by memory and attention replicas, pages left free, tokens shown at once: what engine files say where a job does not.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "hand_over_jobs.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/gaps.hpp"
#include "sim/serving/serving_result.hpp"
#include "sim/serving/tune.hpp"

namespace rehearse::tests {
namespace {

sim::ServingJob job_of(const std::string& cluster, const std::string& engine, const std::string& pool, const std::string& more = "",
                       int input = 800) {
  const std::string text =
      "model: llama3-8b\ncluster: " + cluster + "\nsoftware: " + engine + "\nserving:\n  pools:\n    all: {role: both" + pool +
      "}\n  load: {arrivals: {poisson: 2 /s}, input: " + std::to_string(input) + ", output: 40, requests: 200}\n" + more;
  return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
}

using Limits = std::pair<int, int>;  // sequences, tokens

Limits limits_of(const std::string& cluster, const std::string& engine, const std::string& pool = "") {
  const sim::ServingJob job = job_of(cluster, engine, pool);
  const sim::EngineHabits& habits = job.pools.front().habits;
  return {habits.sequences, habits.tokens};
}

TEST(AnEnginesLimits, follow_the_memory) {
  EXPECT_EQ(limits_of("dgx-h100-ndr400", "vllm"), Limits(1024, 8192));
  EXPECT_EQ(limits_of("l40s-pcie-8", "vllm"), Limits(256, 2048));
  EXPECT_EQ(limits_of("dgx-a100-80g-hdr200", "vllm"), Limits(256, 2048));  // by its name
  EXPECT_EQ(limits_of("l40s-pcie-8", "vllm", ", limits: {sequences: 99}"), Limits(99, 2048));
  EXPECT_EQ(limits_of("l40s-pcie-8", "sglang"), Limits(2048, 4096));
  EXPECT_EQ(limits_of("a10-pcie", "sglang"), Limits(2048, 2048));
  EXPECT_EQ(limits_of("l40s-pcie-8", "atom"), Limits(512, 16384));
}

// A note says so, unless the job says both; names of GPUs match in capitals too.
TEST(AnEnginesLimits, of_a_gpu_are_noted) {
  const auto notes = [](const std::string& cluster, const std::string& pool) {
    return fmt::format("{}", fmt::join(job_of(cluster, "vllm", pool).notes, "; "));
  };
  const std::string words = "its engine takes at most 256 sequences at once and 2048 tokens a pass";
  EXPECT_NE(notes("l40s-pcie-8", "").find("pool all: on l40s " + words), std::string::npos) << notes("l40s-pcie-8", "");
  EXPECT_EQ(notes("l40s-pcie-8", ", limits: {sequences: 99, tokens: 999}").find("its engine takes"), std::string::npos);
  EXPECT_EQ(notes("dgx-h100-ndr400", "").find("its engine takes"), std::string::npos);
  sim::Gpu gpu = job_of("dgx-a100-80g-hdr200", "vllm", "").parts[0].gpu;
  gpu.name = "Our A100";
  sim::Pool pool = job_of("dgx-h100-ndr400", "vllm", "").pools.front();
  EXPECT_TRUE(settle_limits(pool, gpu));
  EXPECT_EQ(pool.habits.tokens, 2048);
}

// SGLang cuts its tokens by the replicas, vLLM gives each as many; what a job writes is of each.
TEST(AnEnginesLimits, are_shared_by_attention_replicas) {
  EXPECT_EQ(limits_of("dgx-h100-ndr400", "sglang", ", parallel: {dp: 4}"), Limits(2048, 2048));
  EXPECT_EQ(limits_of("dgx-h100-ndr400", "vllm", ", parallel: {dp: 4}"), Limits(1024, 8192));
  EXPECT_EQ(limits_of("dgx-h100-ndr400", "sglang", ", parallel: {dp: 4}, limits: {tokens: 4096}"), Limits(2048, 4096));
}

// Each part's own, and each plan's.
TEST(AnEnginesLimits, are_those_of_the_part_that_tune_tries) {
  const std::string parts = "{parts: {big: {cluster: dgx-h100-ndr400, nodes: 1}, small: {cluster: l40s-pcie-8, nodes: 1}}}";
  const sim::ServingTuning tuning =
      tune_serving(job_of(parts, "vllm", ", part: big",
                          "  slo: {ttft: 2 s, tpot: 80 ms}\ntune: {inventory: {big: 4, small: 4}, tp: [1, 2], confirm: 0, keep: 40}\n"),
                   [](double) {});
  bool small = false, big = false;
  for (const sim::TunedDeployment& one : tuning.best) {
    for (const sim::Pool& pool : one.pools) {
      if (pool.role != sim::Role::both) continue;
      EXPECT_EQ(pool.habits.tokens, pool.part == 0 ? 8192 : 2048);
      (pool.part == 0 ? big : small) = true;
    }
  }
  EXPECT_TRUE(big && small);
}

// vLLM's sampler sorts logits where a load draws from the likeliest tokens, and nowhere else.
TEST(ASampler, sorts_where_the_load_says_so) {
  const auto sort_s = [](const std::string& sampling) {
    const std::string text =
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm-2025\nserving:\n  pools: {all: {role: both}}\n"
        "  load: {arrivals: {poisson: 2 /s}, input: 800, output: 40" +
        sampling + "}\n";
    return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job").pools.front().habits.sort_s;
  };
  EXPECT_EQ(sort_s(""), 0);
  EXPECT_EQ(sort_s(", sampling: greedy"), 0);
  EXPECT_GT(sort_s(", sampling: truncated"), 0);
  EXPECT_THROW(sort_s(", sampling: hot"), config::InputError);
}

// vLLM since 0.14 does not sort: the reader is told.
TEST(ASampler, that_takes_no_time_is_noted) {
  const auto notes = [](const std::string& software) {
    return sim::read_serving_job(
               config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: " + software +
                                           "\nserving:\n  pools: {all: {role: both}}\n"
                                           "  load: {arrivals: {poisson: 2 /s}, input: 800, output: 40, sampling: truncated}\n",
                                       "job.yaml"),
               "job")
        .notes;
  };
  EXPECT_TRUE(notes("vllm-2025").empty());
  ASSERT_EQ(notes("vllm").size(), 1U);
  EXPECT_NE(notes("vllm").front().find("load.sampling changes nothing"), std::string::npos);
}

// Graphs that a job switches off take compiling with them; an engine without any is as ever.
TEST(GraphsSwitchedOff, are_eager) {
  EXPECT_TRUE(job_of("dgx-h100-ndr400", "vllm", ", graphs: false").pools.front().habits.eager);
  EXPECT_FALSE(job_of("dgx-h100-ndr400", "vllm", ", graphs: true").pools.front().habits.eager);
  EXPECT_FALSE(job_of("dgx-h100-ndr400", "trtllm-static", "").pools.front().habits.eager);
}

// 1,000 sequences and 128,256 logits, 20 bytes each, on each of two GPUs.
TEST(WhatASamplerHasReady, is_taken_from_the_cache) {
  const auto memory = [](const std::string& more) {
    const sim::ServingJob job = job_of("dgx-h100-ndr400", "{like: vllm, serving: {sequences: 1000" + more + "}}", ", parallel: {tp: 2}");
    const sim::Pool& pool = job.pools.front();
    return sim::instance_memory(pool.plan, workloads::pass_operators(pool.plan, sim::kernel_fusions(*pool.software)), job.parts.front().gpu,
                                *pool.software, pool.habits);
  };
  const sim::InstanceMemory none = memory(""), ready = memory(", slot_logit: 20 B");
  EXPECT_NEAR(none.left() - ready.left(), 1000.0 * 128256 * 20, 1);
}

// Of a hundred pages one stays free: who needs all waits for ever and is rejected, who needs 99 is served.
TEST(AWatermark, is_left_free) {
  const auto served = [](int input, const std::string& engine) {
    const sim::ServingJob job = sim::read_serving_job(
        config::Node::load_text("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: " + engine +
                                    "\nserving:\n  pools: {all: {role: both, kv_tokens: 1600}}\n  load: {arrivals: at-once, input: " +
                                    std::to_string(input) + ", output: 1, requests: 3, warmup: 0}\n",
                                "job.yaml"),
        "job");
    const sim::Deployment deployment = deploy(job);
    const sim::ServingSetup setup = setup_of(job, deployment);
    return result_of(job, setup, simulate_serving(setup)).finished;
  };
  EXPECT_EQ(served(1570, "vllm-2024"), 3);
  EXPECT_EQ(served(1590, "vllm-2024"), 0);
  EXPECT_EQ(served(1590, "vllm-2025"), 3);
}

// A prompt that all pages would hold and half of them do not is no plan's.
TEST(AWatermark, is_known_to_tune) {
  const auto unfit = [](const std::string& watermark) {
    return tune_serving(job_of("dgx-h100-ndr400", "{like: vllm-2024, serving: {watermark: " + watermark + "}}", "",
                               "  slo: {ttft: 1000 s}\ntune: {inventory: 2, tp: [1], confirm: 0}\n", 300'000),
                        [](double) {})
        .unfit;
  };
  EXPECT_EQ(unfit("0.01"), 0);
  EXPECT_EQ(unfit("0.5"), 3);
}

// Who finds no room waits for one of so many to end: 80 and 110 ms without what stays free.
TEST(AWatermark, leaves_room_for_fewer_by_formula) {
  for (const auto& [watermark, rate] : {std::pair(0.5, 3), std::pair(0.3, 4)}) {
    const FormulaAndRun found = formula_and_run(
        fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {{like: vllm-2024, serving: {{watermark: {}}}}}\nserving:\n"
                    "  pools: {{all: {{role: both, kv_tokens: 40000}}}}\n  load: {{arrivals: {{poisson: {} /s}}, input: 2000, output: 200, "
                    "requests: 8000}}\n",
                    watermark, rate));
    EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.4) << watermark;  // Allen and Cunneen's
  }
}

TEST(Gaps, of_tokens_shown_together_are_one_and_zeros) {
  sim::Gaps gaps;
  gaps.add(0.01, 80);
  gaps.add(0.05, 20);
  const sim::Gaps shown = gaps.shown_by(5);
  EXPECT_EQ(shown.count(), gaps.count());
  EXPECT_EQ(shown.mean_s(), gaps.mean_s());
  EXPECT_EQ(shown.quantile_s(0.8), 0);
  EXPECT_NEAR(shown.quantile_s(0.9), 0.05, 0.01 * 0.05);
  EXPECT_NEAR(shown.quantile_s(0.99), 0.25, 0.01 * 0.25);
  EXPECT_EQ(gaps.shown_by(1).quantile_s(0.5), gaps.quantile_s(0.5));
}

// Of more tokens at once than an answer has behind its first one, all are shown with its end.
TEST(TokensShownTogether, are_no_more_than_an_answer_has) {
  const auto itl = [](int stream) {
    return formula_and_run(
               fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {{like: vllm, serving: {{stream: {}}}}}\nserving:\n"
                           "  pools: {{all: {{role: both}}}}\n  load: {{arrivals: {{constant: 1 /s}}, input: 800, output: 40, "
                           "requests: 20}}\n",
                           stream))
        .simulated.itl;
  };
  EXPECT_EQ(itl(1000).p99_s, itl(39).p99_s);
  EXPECT_GT(itl(39).p99_s, itl(20).p99_s);
  EXPECT_EQ(itl(39).p50_s, 0);
}

}  // namespace
}  // namespace rehearse::tests
