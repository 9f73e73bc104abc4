// The formula against the simulation at loads up to 0.7: first token within 5 %, tokens within 2 %, as docs/serving.md says of Poisson
// arrivals and equal lengths. Where it is less or more, the test says why.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "both_ways.hpp"
#include "deployments.hpp"
#include "sim/serving/formula.hpp"

namespace rehearse::tests {
namespace {

BothWays both(const std::string& text) { return both_ways(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job")); }

struct Within {
  double first_token = 0.05, token = 0.02;
};

void expect_agreement(const BothWays& found, const std::string& which, Within within = {}) {
  const sim::ServingResult& simulated = found.simulated;
  const std::string what = fmt::format("{}: formula {} and {} s, simulated {} and {} s", which, found.formula.ttft.mean_s,
                                       found.formula.tpot.mean_s, simulated.ttft.mean_s, simulated.tpot.mean_s);
  EXPECT_NEAR(found.formula.ttft.mean_s / simulated.ttft.mean_s, 1, within.first_token) << what;
  EXPECT_NEAR(found.formula.tpot.mean_s / simulated.tpot.mean_s, 1, within.token) << what;
}

std::string together(double rate) {
  return fmt::format(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {{all: {{role: both, precision: {{compute: bf16, weights: bf16, kv: bf16}}}}}}\n"
      "  load: {{arrivals: {{poisson: {} /s}}, input: 1000, output: 200, requests: 8000}}\n",
      rate);
}

TEST(FormulaAndSimulationAgree, on_tokens_of_one_pool) {
  for (const double rate : {0.5, 4.0, 12.0}) {
    expect_agreement(both(together(rate)), std::to_string(rate));
  }
}

// An engine that admits whom it can hold to the last token: who finds ten requests there waits for one to end. Without that wait first
// tokens would come in 46 ms. 15 %: answers begin with passes of prompts, and end with those that began together.
TEST(FormulaAndSimulationAgree, on_waiting_for_room) {
  for (const int instances : {1, 3}) {
    for (const double each : {4.0, 5.0}) {
      const BothWays found =
          both(fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
                           "  pools: {{all: {{role: both, instances: {}, overflow: reserve, kv_tokens: 12000}}}}\n"
                           "  load: {{arrivals: {{poisson: {} /s}}, input: 1000, output: 200, requests: 12000}}\n",
                           instances, instances * each));
      expect_agreement(found, fmt::format("{} at {} /s each", instances, each), {.first_token = 0.15});
    }
  }
}

// A prompt of a thousand passes: 5 % as ever for the first token, and an answer at once (a chain of so many pieces would take minutes).
TEST(FormulaAndSimulationAgree, on_prompts_of_very_many_passes) {
  const BothWays found = both(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {all: {role: both, limits: {tokens: 1}}}\n"
      "  load: {arrivals: {poisson: 0.03 /s}, input: 1000, output: 2, requests: 2000}\n");
  EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05) << found.simulated.ttft.mean_s;
}

// Eight instances whose router sees no difference between idle ones share the load: each behaves as one at an eighth of the rate.
TEST(FormulaAndSimulationAgree, on_a_pool_whose_instances_take_turns) {
  const auto pool = [](int instances, double rate, int requests) {
    return fmt::format(
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
        "  pools: {{all: {{role: both, instances: {}, precision: {{compute: bf16, weights: bf16, kv: bf16}}}}}}\n"
        "  router: {{prefill: least-tokens}}\n"
        "  load: {{arrivals: {{poisson: {} /s}}, input: 1000, output: 200, requests: {}}}\n",
        instances, rate, requests);
  };
  const BothWays eight = both(pool(8, 32, 16'000));
  EXPECT_NEAR(eight.formula.tpot.mean_s / eight.simulated.tpot.mean_s, 1, 0.03);
  EXPECT_NEAR(eight.simulated.pools.front().batch / both(pool(1, 4, 8'000)).simulated.pools.front().batch, 1, 0.1);
}

std::string loaded(const std::string& pool, const std::string& load, const std::string& more = "") {
  return fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {{{}}}\n{}  load: {{{}}}\n", pool,
                     more, load);
}

// Prompts first, on instances that take turns: the next prompts behind one's own go elsewhere, so that short answers wait for fewer than
// long ones (14 % apart before that was counted).
TEST(FormulaAndSimulationAgree, on_short_answers_where_prompts_go_first) {
  const BothWays found = both(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm-2024\nserving:\n  pools: {all: {role: both, instances: 4}}\n"
      "  router: {prefill: round-robin}\n  load: {arrivals: {poisson: 8 /s}, input: 4000, output: 12, requests: 40000}\n");
  expect_agreement(found, "short answers", {.first_token = 0.02});
}

// Two sequences of Mixtral read nearly twice the experts of one; and those whose prompts came during one's own decode beside it from its
// first token on (9 % apart before that was counted).
TEST(FormulaAndSimulationAgree, on_who_decodes_beside_whom) {
  const BothWays found = both(
      "model: mixtral-8x7b\ncluster: h20-roce-4x400\nsoftware: vllm\nserving:\n"
      "  pools: {all: {role: both, limits: {tokens: 1024}, precision: {compute: fp8, weights: fp8, kv: bf16}}}\n"
      "  load: {arrivals: {poisson: 0.1 /s}, input: 3569, output: 174, requests: 20000}\n");
  expect_agreement(found, "few at once", {.first_token = 0.02});
}

// A batch of n prompts shares passes of k: a mean one ends with prompt (n + k) / 2, and of those that do not fit a mean one waits for half
// of the time that all take. 20 %: passes with prompts and decoding, in which order does not count.
TEST(FormulaAndSimulationAgree, on_requests_that_come_at_once) {
  for (const char* pools : {"all: {role: both}", "all: {role: both, limits: {sequences: 1}}", "all: {role: both, limits: {sequences: 20}}",
                            "p: {role: prefill}, d: {role: decode, instances: 2}"}) {
    for (const int requests : {12, 50, 400}) {
      const BothWays found = both(loaded(pools, fmt::format("arrivals: at-once, input: 1000, output: 200, requests: {}", requests)));
      expect_agreement(found, fmt::format("{}, {} requests", pools, requests), {.first_token = 0.2, .token = 0.2});
    }
  }
}

// Equal requests whose prompts shared a pass end together and come again together. 8 %: where a wave meets what is left of another one.
TEST(FormulaAndSimulationAgree, on_clients_whose_requests_are_alike) {
  for (const char* pools : {"all: {role: both}", "all: {role: both, batching: prefill-first}",
                            "all: {role: both, batching: static, limits: {sequences: 16}}", "all: {role: both, instances: 2}"}) {
    for (const char* load : {"arrivals: {closed: 16}, input: 1000, output: 200, requests: 320",
                             "arrivals: {closed: 64}, input: 128, "
                             "output: 128, requests: 1280",
                             "arrivals: {closed: 64}, input: 1000, output: 200, requests: 1280"}) {
      const BothWays found = both(loaded(pools, load));
      const std::string what =
          fmt::format("{}, {}: {} s by formula, {} s simulated", pools, load, found.formula.ttft.mean_s, found.simulated.ttft.mean_s);
      EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.08) << what;
      EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.03) << what;
      EXPECT_NEAR(found.formula.e2e.mean_s / found.simulated.e2e.mean_s, 1, 0.02) << what;
      EXPECT_NEAR(found.formula.requests_per_s / found.simulated.requests_per_s, 1, 0.05) << what;
    }
  }
}

// A batch computes its prompts in full passes, then all of its answers; the last one holds the rest.
TEST(FormulaAndSimulationAgree, on_static_batches_at_once) {
  for (const int sequences : {16, 64}) {
    for (const int requests : {12, 64, 400}) {
      const BothWays found = both(loaded(fmt::format("all: {{role: both, batching: static, limits: {{sequences: {}}}}}", sequences),
                                         fmt::format("arrivals: at-once, input: 1000, output: 200, requests: {}", requests)));
      EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.02) << sequences << ' ' << requests;
      EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.01) << sequences << ' ' << requests;
      EXPECT_NEAR(found.formula.e2e.mean_s / found.simulated.e2e.mean_s, 1, 0.001) << sequences << ' ' << requests;
    }
  }
}

// Prompts alone: a client waits for all others, a request of a batch for half of them. Nobody writes answers.
TEST(FormulaAndSimulationAgree, on_prompts_alone_of_clients_and_batches) {
  for (const char* arrivals : {"{closed: 64}", "at-once"}) {
    const BothWays found =
        both(loaded("p: {role: prefill, instances: 3}, d: {role: decode}",
                    fmt::format("arrivals: {}, input: 1000, output: 200, requests: 600", arrivals), "  isolate: prefill\n"));
    EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05) << arrivals;
    EXPECT_LT(found.formula.tpot.mean_s, 0);
    EXPECT_LT(found.simulated.tpot.mean_s, 0);
    for (const sim::ServingResult& one : {found.formula, found.simulated})
      EXPECT_DOUBLE_EQ(one.output_tokens_per_s, one.requests_per_s) << "first tokens alone: " << arrivals;
  }
}

// A cache that comes at any time waits for half of a pass, at an engine of its own too.
TEST(FormulaAndSimulationAgree, on_where_isolated_decoding_waits) {
  const BothWays found = both(loaded("p: {role: prefill}, d: {role: decode}",
                                     "arrivals: {poisson: 20 /s}, input: 1000, output: 200, requests: 3000", "  isolate: decode\n"));
  for (const char* stage : {"queued", "decode_queued"})
    EXPECT_NEAR(found.formula.stages.at(stage) / found.simulated.stages.at(stage), 1, 0.05) << stage;
}

TEST(FormulaAndSimulationAgree, that_answers_of_one_token_have_no_time_per_token) {
  for (const char* pools : {"all: {role: both}", "p: {role: prefill}, d: {role: decode}"}) {
    const BothWays found = both(loaded(pools, "arrivals: {poisson: 4 /s}, input: 1000, output: 1, requests: 100"));
    EXPECT_LT(found.formula.tpot.mean_s, 0) << pools;
    EXPECT_LT(found.simulated.tpot.mean_s, 0) << pools;
  }
}

// Short answers suffer more from the prompts that came with them; lengths drawn as Azure's. First tokens beside prompts of 14,000 tokens
// are known less well.
TEST(FormulaAndSimulationAgree, on_lengths_that_vary) {
  for (const double rate : {1.0, 6.0, 12.0}) {
    const std::string text = fmt::format(
        "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
        "  pools: {{all: {{role: both, precision: {{compute: bf16, weights: bf16, kv: bf16}}}}}}\n"
        "  load: {{arrivals: {{poisson: {} /s}}, input: {{lognormal: {{median: 1020, p90: 2734}}, max: 14050}}, output: {{lognormal: "
        "{{median: "
        "129, p90: 424}}, max: 1000}}, requests: 20000}}\n",
        rate);
    const BothWays found = both(text);
    expect_agreement(found, std::to_string(rate), {.first_token = 0.15, .token = 0.05});
    EXPECT_NEAR(found.formula.e2e.mean_s / found.simulated.e2e.mean_s, 1, 0.05) << rate;
  }
}

std::string apart(double rate) {
  return fmt::format(
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools:\n"
      "    prefill: {{role: prefill, instances: 1, parallel: {{tp: 4}}, precision: {{compute: fp8, weights: fp8, kv: bf16}}, limits: "
      "{{tokens: 2048}}}}\n"
      "    decode: {{role: decode, instances: 1, parallel: {{tp: 4}}, precision: {{compute: fp8, weights: fp8, kv: bf16}}}}\n"
      "  load: {{arrivals: {{poisson: {} /s}}, input: 2048, output: 200, requests: 8000}}\n",
      rate);
}

TEST(FormulaAndSimulationAgree, on_both_sides_apart) {
  for (const double rate : {1.0, 3.0}) {
    expect_agreement(both(apart(rate)), std::to_string(rate));
  }
}

// Out of 200 drawn at random: what each showed stands beside it. Poisson arrivals, fixed lengths, loads of 0.5 to 0.65.
TEST(FormulaAndSimulationAgree, on_deployments_drawn_at_random) {
  struct Drawn {
    const char *why, *job;
  };
  for (const auto& [why, job] :
       {Drawn{
            "each instance has a queue of its own behind a router that does not look",
            "model: qwen3-8b\ncluster: dgx-h100-ndr400\nsoftware: sglang\nserving:\n  pools: {p: {role: prefill, instances: 3}, d: {role: "
            "decode, instances: 2}}\n  router: {prefill: random}\n  load: {arrivals: {poisson: 70 /s}, input: 819, output: 30, "
            "requests: 12000}\n"},
        Drawn{"several short prompts share a pass, which is hardly longer",
              "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: sglang\nserving:\n  pools: {p: {role: prefill}, d: {role: decode, "
              "parallel: {tp: 2}}}\n  load: {arrivals: {poisson: 90 /s}, input: 133, output: 12, requests: 12000}\n"},
        Drawn{"a prompt of several passes waits for those before it",
              "model: qwen3-8b\ncluster: dgx-h100-ndr400\nsoftware: sglang\nserving:\n  pools: {all: {role: both, limits: {tokens: "
              "1024}}}\n  load: {arrivals: {poisson: 2.5 /s}, input: 6030, output: 22, requests: 40000}\n"},
        Drawn{"instances that share requests evenly hold fewer at once beside one another",
              "model: qwen3-30b-a3b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {all: {role: both, instances: 4}}\n  "
              "load: {arrivals: {poisson: 4 /s}, input: 900, output: 64, requests: 8000}\n"},
        Drawn{"behind the first token come the hand-over and the other engine",
              "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {p: {role: prefill}, d: {role: "
              "decode}}\n  transfer: {first_token: prefill}\n  load: {arrivals: {poisson: 8 /s}, input: 1000, output: 37, requests: "
              "8000}\n"},
        Drawn{"some ways lead to another node",
              "model: llama2-7b\ncluster: dgx-h100-ndr400\nsoftware: trtllm\nserving:\n  pools: {p: {role: prefill, instances: 3}, d: "
              "{role: decode, instances: 3, parallel: {tp: 4}}}\n  load: {arrivals: {poisson: 60 /s}, input: 608, output: 160, requests: "
              "12000}\n"}}) {
    const BothWays found = both(job);
    expect_agreement(found, why);
    EXPECT_NEAR(found.formula.e2e.mean_s / found.simulated.e2e.mean_s, 1, 0.02) << why << ": " << found.simulated.e2e.mean_s << " s";
  }
}

// Caches that need more of a link than it has are an answer, not a number.
TEST(FormulaAndSimulationAgree, that_links_may_be_too_narrow) {
  const std::string text =
      "model: llama2-7b\ncluster: a100-pcie-8\nsoftware: sglang\nserving:\n  pools: {p: {role: prefill, instances: 5}, d: {role: "
      "decode}}\n  load: {arrivals: {poisson: 75 /s}, input: 700, output: 4, requests: 1000}\n";
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  EXPECT_NE(predict_serving(job, deployment, job.load.input.low).overloaded.find("the links between the pools"), std::string::npos)
      << predict_serving(job, deployment, job.load.input.low).overloaded;
}

// Clients that think, on four instances: requests per second within 4 %, beginning and end of the load in them (equal ones stay together,
// so that what each of them sees is exact); and one client, who meets nobody.
TEST(FormulaAndSimulationAgree, on_clients_that_think) {
  for (const char* output : {"100", "{uniform: [20, 180]}"}) {
    for (const int clients : {1, 8, 64}) {
      for (const int think_s : {0, 1, 10}) {
        if (think_s == 0 && clients > 1) continue;
        const BothWays found = both(loaded("all: {role: both, instances: 4}",
                                           fmt::format("arrivals: {{closed: {}, think: {} s}}, input: 500, output: {}, requests: {}",
                                                       clients, think_s, output, 200 + 60 * clients)));
        const std::string which = fmt::format("{} clients, {} s, {}", clients, think_s, output);
        EXPECT_NEAR(found.formula.requests_per_s / found.simulated.requests_per_s, 1, 0.04) << which;
        EXPECT_GE(found.formula.e2e.mean_s, found.formula.ttft.mean_s) << which;
        if (clients > 1) continue;
        EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 1e-6) << which;
      }
    }
  }
}

// Static batches of instances of both: who comes during one waits for the next. At a constant rate with time to spare nobody does.
TEST(FormulaAndSimulationAgree, on_static_batches_of_prompts_and_answers) {
  for (const char* arrivals : {"poisson: 0.5 /s", "poisson: 2 /s", "poisson: 10 /s", "constant: 0.5 /s"}) {
    for (const int output : {1, 20, 200}) {
      const BothWays found = both(
          fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-static\nserving:\n  pools: {{all: {{role: both}}}}\n"
                      "  load: {{arrivals: {{{}}}, input: 500, output: {}, requests: 8000}}\n",
                      arrivals, output));
      EXPECT_NEAR(found.formula.ttft.mean_s / found.simulated.ttft.mean_s, 1, 0.05) << arrivals << ' ' << output;
      if (output > 1) {
        EXPECT_NEAR(found.formula.tpot.mean_s / found.simulated.tpot.mean_s, 1, 0.02) << arrivals << ' ' << output;
      }
    }
  }
}

// Answers of two tokens under engines that work ahead: the pass behind a prompt was put together before those came that came during it.
// Prompts first: 3 %; beside decoding 30 %, where a chunk that is left stands in it.
TEST(FormulaAndSimulationAgree, on_answers_of_two_tokens) {
  for (const char* engine : {"sglang", "vllm"}) {
    for (const double rate : {2.0, 5.0, 7.0}) {
      const BothWays found =
          both(fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n  pools: {{all: {{role: both}}}}\n"
                           "  load: {{arrivals: {{poisson: {} /s}}, input: 4000, output: 2, requests: 8000}}\n",
                           engine, rate));
      const double within = engine == std::string("sglang") ? 0.03 : 0.3;
      expect_agreement(found, fmt::format("{} {}", engine, rate), {.first_token = 0.06, .token = within});
    }
  }
}

// All tokens that are tried are taken: both come with one pass, and a further one takes no time, by formula too.
TEST(FormulaAndSimulationAgree, on_tokens_that_take_no_time) {
  const BothWays found = both(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {p: {role: prefill}, d: {role: decode, "
      "overflow: reserve, speculative: {tokens: 1, acceptance: 1}}}\n"
      "  load: {arrivals: {poisson: 2 /s}, input: 500, output: 2, requests: 200}\n");
  EXPECT_EQ(found.formula.tpot.mean_s, 0);
  EXPECT_EQ(found.simulated.tpot.mean_s, 0);
}

// Five sixths of the requests go to fast instances, the others to a slow one: of all of them half are within what the fast ones keep to,
// nine tenths are not.
TEST(FormulaAndSimulationAgree, on_what_unlike_pools_keep_together) {
  for (const double percentile : {0.5, 0.7, 0.95}) {
    const BothWays found = both(fmt::format(
        "model: llama3-8b\ncluster: {{parts: {{a: {{cluster: dgx-h100-ndr400, nodes: 1}}, b: {{cluster: a10-pcie, nodes: 2}}}}, "
        "between: {{bandwidth: 100 Gbps, latency: 8 us}}}}\nsoftware: vllm\nserving:\n"
        "  pools: {{fast: {{role: both, part: a, instances: 4}}, slow: {{role: both, part: b, parallel: {{tp: 2}}}}}}\n"
        "  load: {{arrivals: {{poisson: 4 /s}}, input: 1000, output: 100, requests: 5000}}\n"
        "  slo: {{ttft: 1 s, tpot: 15 ms, percentile: {}}}\n",
        percentile));
    EXPECT_EQ(found.formula.kept, found.simulated.kept) << percentile;
    EXPECT_EQ(found.formula.kept, percentile < 0.8) << percentile;
  }
}

// The same of prompts alone, half of which are computed on fast instances.
TEST(FormulaAndSimulationAgree, on_what_unlike_pools_of_prompts_keep_together) {
  const BothWays found = both(
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools:\n    fast: {role: prefill, instances: 2, parallel: {tp: 8}, precision: {compute: fp8, weights: fp8, kv: fp8}}\n"
      "    slow: {role: prefill, instances: 2, parallel: {tp: 2}, precision: {compute: fp8, weights: fp8, kv: fp8}}\n"
      "    decode: {role: decode, instances: 4, parallel: {tp: 4}, precision: {compute: fp8, weights: fp8, kv: fp8}}\n"
      "  router: {prefill: round-robin}\n"
      "  load: {arrivals: {poisson: 4 /s}, input: 1000, output: 100, requests: 5000}\n"
      "  slo: {ttft: 180 ms, percentile: 0.45}\n");
  EXPECT_TRUE(found.simulated.kept);
  EXPECT_TRUE(found.formula.kept) << found.formula.promised_ttft_s;
}

// A cache of the user's size is held against the memory all the same.
TEST(ACacheOfGivenTokens, fits_into_the_memory_with_the_weights) {
  const auto misfit = [](const char* model, const char* cluster, int tokens) {
    const sim::ServingJob job = sim::read_serving_job(
        config::Node::load_text(
            fmt::format("model: {}\ncluster: {}\nsoftware: vllm\nserving:\n  pools: {{all: {{role: both, kv_tokens: {}}}}}\n"
                        "  load: {{arrivals: at-once, input: 100, output: 2}}\n",
                        model, cluster, tokens),
            "job.yaml"),
        "job");
    return deploy(job).misfit;
  };
  EXPECT_EQ(misfit("llama3-8b", "dgx-h100-ndr400", 3000), "");
  EXPECT_NE(misfit("llama3-8b", "dgx-h100-ndr400", 2'000'000).find("2000000 tokens (kv_tokens)"), std::string::npos);
  EXPECT_NE(misfit("llama3-70b", "a10-pcie", 3000).find("GB of weights"), std::string::npos);
}

}  // namespace
}  // namespace rehearse::tests
