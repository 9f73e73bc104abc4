// Static batches by formula: what the promised share of requests sees, and instances that are free.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hand_over_jobs.hpp"

namespace rehearse::tests {
namespace {

// Prompts alone in answers of one token, of lengths from a few to ten times the mean.
TEST(StaticBatches, keep_long_prompts_longer) {
  double before_s = 0;
  for (const double percentile : {0.5, 0.9, 0.99}) {
    const FormulaAndRun found = formula_and_run(
        fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n  pools: {{all: {{role: both}}}}\n"
                    "  load: {{arrivals: {{poisson: 1 /s}}, input: {{lognormal: {{median: 1020, p90: 2734}}, max: 14050}}, output: 1, "
                    "requests: 5000}}\n"
                    "  slo: {{ttft: 1 s, percentile: {}}}\n",
                    percentile));
    EXPECT_GT(found.formula.promised_ttft_s, 1.3 * before_s) << percentile;
    const sim::Spread& simulated = found.simulated.ttft;
    const double kept_s = percentile > 0.9 ? simulated.p99_s : percentile > 0.5 ? simulated.p90_s : simulated.p50_s;
    EXPECT_NEAR(found.formula.promised_ttft_s / kept_s, 1, 0.3) << percentile;
    before_s = found.formula.promised_ttft_s;
  }
}

// Instances in turn, of which each gets every n-th request: exact but for how long a batch of several takes. Who looks for the fewest
// requests, or the emptiest cache, finds the same while batches are of one.
TEST(StaticBatches, of_several_instances_are_as_they_come_in_turn) {
  for (const int instances : {2, 3, 5}) {
    for (const double each : {0.2, 1.2, 2.5, 5.0}) {
      for (const char* router : {"round-robin", "least-requests", "least-kv"}) {
        const bool in_turn = router == std::string("round-robin");
        if (!in_turn && each > 1) continue;
        const int requests = each == 1.2 ? 20000 : 8000;  // where waits differ most: of one run by 2 %, of the others by 1
        const FormulaAndRun found = formula_and_run(
            fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n  pools: {{all: {{role: both, "
                        "instances: {}}}}}\n"
                        "  router: {{prefill: {}}}\n  load: {{arrivals: {{poisson: {} /s}}, input: 1000, output: 100, requests: {}}}\n",
                        instances, router, each * instances, requests));
        EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, in_turn ? 0.03 : 0.05)
            << instances << ' ' << each << router;
        EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.02) << instances << ' ' << each << router;
      }
    }
  }
}

// Who comes within a batch of one waits for what is left of it: with gaps of 0.3 of variation hardly anybody, with 2 twice and five times
// as long as at random.
TEST(StaticBatches, wait_by_how_unevenly_requests_come) {
  for (const int instances : {1, 3}) {
    for (const double variation : {0.3, 0.6, 1.0, 2.0}) {
      const FormulaAndRun found = formula_and_run(
          fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n  pools: {{all: {{role: both, "
                      "instances: {}}}}}\n"
                      "  load: {{arrivals: {{gamma: {} /s, cv: {}}}, input: 1000, output: 100, requests: 20000}}\n",
                      instances, 0.6 * instances, variation));
      EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.15) << instances << ' ' << variation;
    }
  }
}

// Who finds no slot waits for the whole batch that others make.
TEST(StaticBatches, in_turn_keep_to_their_slots) {
  for (const auto& [instances, slots, each] : {std::tuple(1, 1, 0.5), std::tuple(1, 2, 2.0), std::tuple(3, 1, 0.5), std::tuple(3, 1, 1.5),
                                               std::tuple(3, 2, 2.0), std::tuple(3, 3, 3.0), std::tuple(3, 4, 3.0)}) {
    const FormulaAndRun found = formula_and_run(
        fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n"
                    "  pools: {{all: {{role: both, instances: {}, limits: {{sequences: {}}}}}}}\n  router: {{prefill: round-robin}}\n"
                    "  load: {{arrivals: {{poisson: {} /s}}, input: 1000, output: 50, requests: 20000}}\n",
                    instances, slots, each * instances));
    EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05) << instances << ' ' << slots << ' ' << each;
  }
}

// A router that looks sends caches to instances without a batch: one of four alone would keep them four times as long at 3/s.
TEST(StaticBatches, of_decoding_alone_find_instances_that_are_free) {
  for (const auto& [rate, times] : {std::pair(3.0, 2.0), std::pair(4.5, 1.25), std::pair(6.0, 1.25)}) {
    const FormulaAndRun found =
        formula_and_run(fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n  isolate: decode\n"
                                    "  pools: {{d: {{role: decode, instances: 4}}}}\n"
                                    "  load: {{arrivals: {{poisson: {} /s}}, input: 500, output: 100, requests: 8000}}\n",
                                    rate));
    const double off = found.formula.ttft.mean_s / found.simulated.ttft.mean_s;
    EXPECT_LT(off, times) << rate;
    EXPECT_GT(off, 1 / times) << rate;
  }
}

// At a constant rate who comes during a batch of a long answer waits for it, and makes the next one longer; of instances in turn each has a
// constant rate of its own.
TEST(StaticBatches, of_unlike_answers_keep_others_waiting_at_a_constant_rate) {
  for (const int instances : {1, 2, 3}) {
    for (const double rate : {0.3, 0.4, 0.5, 0.6, 0.66}) {
      if (instances > 1 && rate != 0.4 && rate != 0.6) continue;
      const FormulaAndRun found =
          formula_and_run(fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n"
                                      "  pools: {{all: {{role: both, instances: {}}}}}\n  router: {{prefill: round-robin}}\n"
                                      "  load: {{arrivals: {{constant: {} /s}}, input: 500, output: {{uniform: [1, 400]}}, requests: {}}}\n"
                                      "  slo: {{ttft: 1 s, percentile: 0.9}}\n",
                                      instances, rate * instances, 8000 * instances));
      EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.15) << instances << ' ' << rate;
      EXPECT_NEAR(found.formula.promised_ttft_s / found.simulated.ttft.p90_s, 1, 0.25) << instances << ' ' << rate;
    }
  }
}

TEST(PromptsAlone, promise_no_time_per_token) {
  const FormulaAndRun found = formula_and_run(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  isolate: prefill\n"
      "  pools: {p: {role: prefill}, d: {role: decode}}\n  load: {arrivals: {poisson: 2 /s}, input: 500, output: 20, requests: 100}\n"
      "  slo: {ttft: 1 s}\n");
  EXPECT_LT(found.formula.promised_tpot_s, 0);
  EXPECT_GT(found.formula.promised_ttft_s, 0);
}

}  // namespace
}  // namespace rehearse::tests
