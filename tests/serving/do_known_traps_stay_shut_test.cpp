// Mistakes that simulators and engines are known to have made with prefill and decode apart (their trackers and change logs).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "config/data_dir.hpp"
#include "deployments.hpp"
#include "places.hpp"
#include "sim/job/parts.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/load_moments.hpp"
#include "sim/serving/serving_result.hpp"
#include "sim/validate/outcome.hpp"

namespace rehearse::tests {
namespace {

struct Outcome {
  sim::ServingResult result;
  sim::ServingRun run;
  std::vector<std::string> alignment;
  double transfer_alone_s = 0;
};

Outcome outcome(const std::string& text) {
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  EXPECT_EQ(deployment.misfit, "");
  const sim::ServingSetup setup = setup_of(job, deployment);
  Outcome out;
  out.run = simulate_serving(setup);
  out.result = result_of(job, setup, out.run);
  if (!deployment.transfers) return out;
  for (const sim::KvAlignmentWork& work : deployment.transfers->lanes().front().alignment) out.alignment.push_back(work.reason);
  out.transfer_alone_s = deployment.transfers->alone_s(job.load.input.low);
  return out;
}

struct Sides {
  std::string prefill = "{tp: 1}", decode = "{tp: 1}", prefill_more = "", decode_more = "", transfer = "{path: gpu-direct}";
  std::string load = "{arrivals: {poisson: 4 /s}, input: 1000, output: 50, requests: 300}";
};

std::string apart(const Sides& sides) {
  return fmt::format(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools:\n"
      "    prefill: {{role: prefill, parallel: {}{}}}\n"
      "    decode: {{role: decode, parallel: {}{}}}\n"
      "  transfer: {}\n"
      "  load: {}\n",
      sides.prefill, sides.prefill_more, sides.decode, sides.decode_more, sides.transfer, sides.load);
}

// The decoding side has room for two requests: nobody is dropped or aborted, the others wait, and prefill stops when its own pages are
// gone.
TEST(ASmallCache, on_the_decoding_side_makes_requests_wait_and_loses_none) {
  for (const char* reserve : {"on-pull", "before-prefill"}) {
    const Outcome found = outcome(apart({.prefill_more = ", kv_tokens: 4096",
                                         .decode_more = ", kv_tokens: 2200",
                                         .transfer = fmt::format("{{reserve: {}}}", reserve),
                                         .load = "{arrivals: at-once, input: 1000, output: 50, requests: 100}"}));
    EXPECT_EQ(found.result.finished, 100);
    for (const std::int64_t left : found.run.pages_left) EXPECT_EQ(left, 0);
    EXPECT_LE(found.result.pools[1].most_pages_share, 1);
    EXPECT_LE(found.result.pools[0].most_pages_share, 1);
    EXPECT_GT(found.result.stages.at("queued"), 1);                       // for the prompts before them, whose pages are not given back
    const double waited_s = std::string(reserve) == "on-pull" ? 0.3 : 0;  // four stand there at a time, two are decoded in 0.4 s
    EXPECT_GE(found.result.stages.at("waiting"), waited_s);
    for (const sim::RequestState& request : found.run.requests) {
      double sum = 0;
      for (const double seconds : request.spent_s) sum += seconds;
      EXPECT_NEAR(sum, request.e2e_s(), 1e-9 * request.last_s);
    }
  }
}

// The client sees the first token where the job says, and the difference is the hand-over and the first pass behind it.
TEST(FirstTokens, end_where_the_job_says) {
  const Outcome late = outcome(apart({})), early = outcome(apart({.transfer = "{first_token: prefill}"}));
  const auto& stages = early.result.stages;
  EXPECT_NEAR(early.result.ttft.mean_s, stages.at("queued") + stages.at("prefilling"), 1e-9);
  EXPECT_GT(late.result.ttft.mean_s, early.result.ttft.mean_s + late.result.kv_transfer_s);
}

TEST(Throughput, is_of_the_gpus_that_do_the_work) {
  const Outcome found = outcome(apart({.prefill = "{tp: 2}", .decode = "{tp: 4}"}));
  EXPECT_NEAR(found.result.input_tokens_per_s_per_prompt_gpu, found.result.input_tokens_per_s / 2, 1e-9);
  EXPECT_NEAR(found.result.output_tokens_per_s_per_decode_gpu, found.result.output_tokens_per_s / 4, 1e-9);
  EXPECT_NEAR(found.result.output_tokens_per_s_per_gpu, found.result.output_tokens_per_s / 6, 1e-9);
}

// 131 MB of 1,000 tokens (63 pages of 16) from node to node, over one NIC of 50 GB/s and 95 %: no number in a file makes it faster.
TEST(AHandOver, is_not_faster_than_its_ports) {
  const Outcome found = outcome(
      "model: llama3-8b\ncluster: {parts: {a: {cluster: dgx-h100-ndr400, nodes: 1}, b: {cluster: dgx-h100-ndr400, nodes: 1}}, between: "
      "{bandwidth: 12500 GB/s}}\n"
      "software: vllm\nserving:\n  pools:\n    prefill: {role: prefill, part: a}\n    decode: {role: decode, part: b}\n"
      "  load: {arrivals: {closed: 1}, input: 1000, output: 50, requests: 20}\n");
  const double bytes = 63 * 16 * 131'072.0;
  EXPECT_EQ(found.result.kv_transfer_bytes, bytes);
  EXPECT_GT(found.result.kv_transfer_s, bytes / (0.95 * 50e9));
  const double pages_s = 63 * 32 * 2 * 4e-6;  // keys and values of 32 layers, one by one
  EXPECT_NEAR(found.result.kv_transfer_s, 0.39e-3 + 6.6e-6 + pages_s + bytes / (0.73 * 0.95 * 50e9), 1e-5);
}

// Measured: Mooncake's connector, eight ranks of Qwen3-8B between two nodes of 8 H800 (docs/serving.md has all nine sizes).
TEST(AHandOver, takes_as_long_alone_by_formula_as_simulated) {
  for (const char* path : {"gpu-direct", "host-staged"}) {
    const Outcome found = outcome(
        apart({.transfer = fmt::format("{{path: {}}}", path), .load = "{arrivals: {closed: 1}, input: 3000, output: 20, requests: 10}"}));
    EXPECT_NEAR(found.result.kv_transfer_s, found.transfer_alone_s, 1e-9);
  }
}

TEST(AHandOver, shares_its_links) {
  const std::string many = "{arrivals: at-once, input: 4000, output: 2, requests: 16}",
                    one = "{arrivals: {closed: 1}, input: 4000, output: 2, requests: 16}";
  const std::string parallel = "{tp: 8}";  // each side fills a node, so that caches cross the network
  const Outcome crowd = outcome(apart({.prefill = parallel, .decode = parallel, .load = many})),
                alone = outcome(apart({.prefill = parallel, .decode = parallel, .load = one}));
  EXPECT_GE(crowd.result.kv_transfer_s, alone.result.kv_transfer_s * (1 - 1e-9));
}

// Another plan, layout, page or number format is priced and named, never passed over in silence.
TEST(ADifference, of_the_two_sides_is_named_and_costs_time) {
  const Outcome same = outcome(apart({}));
  EXPECT_TRUE(same.alignment.empty());
  const auto expect_named = [&](const Sides& sides, const std::string& name) {
    const Outcome found = outcome(apart(sides));
    ASSERT_EQ(found.alignment.size(), 1U) << name;
    EXPECT_NE(found.alignment.front().find(name), std::string::npos) << found.alignment.front();
  };
  expect_named({.decode_more = ", kv: {layout: hnd}"}, "pages of nhd are made pages of hnd");
  expect_named({.decode_more = ", kv: {page: 24}"}, "pages of 16 tokens are made pages of 24");
  expect_named({.decode_more = ", precision: {kv: fp8}"}, "bf16 is made fp8, before it is sent");
  expect_named({.decode = "{tp: 2}"}, "heads of tp 1 are packed for tp 2");
  const Outcome layout = outcome(apart({.decode_more = ", kv: {layout: hnd}"}));
  EXPECT_GT(layout.result.kv_transfer_s, same.result.kv_transfer_s);
  expect_named({.decode_more = ", kv: {page: 32}"}, "pages of 16 tokens are found in pages of 32");
  EXPECT_EQ(outcome(apart({.decode_more = ", kv: {page: 32}"})).result.kv_transfer_s,
            same.result.kv_transfer_s);  // arithmetic of addresses
}

// The first requests meet an empty engine; they are not in the mean.
TEST(WarmUp, is_left_out) {
  const std::string load = "{{arrivals: {{closed: 64}}, input: 1000, output: 50, requests: 640, warmup: {}}}";
  const Outcome with = outcome(apart({.load = fmt::format(fmt::runtime(load), 0)})),
                without = outcome(apart({.load = fmt::format(fmt::runtime(load), 128)}));
  EXPECT_EQ(without.result.counted, 512);
  EXPECT_NE(with.result.ttft.mean_s, without.result.ttft.mean_s);
}

// Fifty requests that are alike in everything and come at once stay fifty behind the hand-over.
TEST(ARequest, is_one_request_behind_the_hand_over) {
  const Outcome found = outcome(apart({.load = "{arrivals: at-once, input: 1000, output: 50, requests: 50}"}));
  EXPECT_EQ(found.result.finished, 50);
  EXPECT_EQ(found.run.pools[0].instances[0].prompt_tokens, 50 * 1000);
  EXPECT_EQ(found.run.pools[1].instances[0].answer_tokens, 50 * 50);
  for (const sim::RequestState& request : found.run.requests) EXPECT_EQ(request.transfer_bytes, 63 * 16 * 131'072.0);
}

// How much of the memory an engine takes decides its batch: every engine's file, or that which it is like, says it, no default of
// ours does.
TEST(AnEngine, says_how_much_of_the_memory_it_takes) {
  int engines = 0;
  for (const std::string& name : config::data_names("platforms/software")) {
    const auto habits = sim::ready_made(sim::software_part, name).node.find("serving");
    if (!habits) continue;
    ++engines;
    EXPECT_TRUE(habits->find("memory_fraction")) << name;
  }
  EXPECT_GE(engines, 5);
}

// Ten milliseconds are 5 % of 200 and half of 20: of first tokens measured below 200 ms the absolute error is judged, of longer ones the
// relative one.
TEST(AShortFirstToken, is_judged_in_milliseconds) {
  constexpr double short_ms = 200;
  const std::string cases = std::string(REHEARSE_SOURCE_DIR) + "/tests/measured/serving/cases/trtllm-static.yaml";
  double off_ms = 0, off_share = 0;
  int short_ones = 0, long_ones = 0;
  for (const sim::Outcome& outcome : run_cases(sim::read_cases({cases}), {}, {})) {
    const auto measured = outcome.measured.find(sim::Metric::ttft_ms);
    if (measured == outcome.measured.end()) continue;
    const double predicted = outcome.predicted.at(sim::Metric::ttft_ms);
    const bool is_short = measured->second < short_ms;
    (is_short ? off_ms : off_share) += std::abs(is_short ? predicted - measured->second : predicted / measured->second - 1);
    ++(is_short ? short_ones : long_ones);
  }
  ASSERT_EQ(short_ones, 24);
  ASSERT_EQ(long_ones, 2);
  EXPECT_LE(off_ms / short_ones, 15);
  EXPECT_LE(off_share / long_ones, 0.2);
}

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Servers that stream several tokens at a time are not modelled: asked for, they are refused, never mixed in.
TEST(WhatIsNotModelled, is_refused_by_name) {
  EXPECT_NE(refusal_of(apart({.decode_more = ", stream: 10"})).find("unknown key 'stream'"), std::string::npos);
  EXPECT_NE(refusal_of(apart({.transfer = "{mode: pagewise}"})).find("mode cannot be 'pagewise'"), std::string::npos);
}

// Overload: the formula says which pool and how much it carries; the simulation ends.
TEST(AnOverload, is_an_answer) {
  const std::string text = apart({.load = "{arrivals: {poisson: 500 /s}, input: 1000, output: 50, requests: 2000}"});
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  EXPECT_NE(predict_serving(job, deployment, 1000).overloaded.find("pool prefill is beyond its capacity"), std::string::npos);
  EXPECT_EQ(outcome(text).result.finished, 1900);
}

// 20,000 sequences of 128,256 logits with 28 B for each are 71.8 GB of an H100's 80.
TEST(AMisfit, says_what_the_logits_of_all_sequences_take) {
  const std::string text =
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: trtllm-012\nserving:\n"
      "  pools: {all: {role: both, parallel: {tp: 1}, limits: {sequences: 20000}}}\n"
      "  load: {arrivals: {poisson: 1 /s}, input: 100, output: 100, requests: 100}\n";
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  EXPECT_NE(deploy(job).misfit.find(", 71.8 GB for the logits of 20000 sequences and"), std::string::npos) << deploy(job).misfit;
}

double carried_of(const std::string& overloaded) {
  const auto at = overloaded.find("it carries ");
  EXPECT_NE(at, std::string::npos) << overloaded;
  return at == std::string::npos ? 0 : std::stod(overloaded.substr(at + 11));
}

struct Overload {
  const char *engine, *router, *lengths;
  int instances = 2;
  const char* limits = "{}";
};

std::string overloaded_of(const std::string& text) {
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  return predict_serving(job, deploy(job), sim::moments_of(job.load, job.seed).input).overloaded;
}

std::string overloaded_at(const Overload& of, double rate_per_s) {
  return overloaded_of(
      fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n"
                  "  pools: {{all: {{role: both, instances: {}, parallel: {{tp: 1}}, limits: {}}}}}\n  router: {{prefill: {}}}\n"
                  "  load: {{arrivals: {{poisson: {} /s}}, {}, requests: 2000}}\n",
                  of.engine, of.instances, of.limits, of.router, rate_per_s, of.lengths));
}

void expect_begins_where_carried(const Overload& of) {
  const double carried = carried_of(overloaded_at(of, 1e6));
  SCOPED_TRACE(fmt::format("{} {} {} {}: {}", of.lengths, of.engine, of.router, of.limits, carried));
  EXPECT_EQ(overloaded_at(of, 0.98 * carried), "");
  EXPECT_NE(overloaded_at(of, 1.02 * carried), "");
  EXPECT_NEAR(carried_of(overloaded_at(of, 1.1 * carried)) / carried, 1, 1e-3);
}

// What instances carry does not depend on how far beyond it the load is, also where prompts go first and leave decoding no time; and it is
// where they begin to be overloaded: of equal prompts and unlike ones, in turn and at random, where places end or prompts fill all passes.
TEST(AnOverload, does_not_change_what_is_carried) {
  for (const char* lengths : {"input: 136, output: 200", "input: {uniform: [200, 3000]}, output: {uniform: [50, 250]}",
                              "input: {uniform: [1000, 5000]}, output: {uniform: [5, 40]}"}) {
    for (const char* engine : {"vllm-2024", "vllm"}) {
      for (const char* router : {"least-requests", "random"}) expect_begins_where_carried({engine, router, lengths});
    }
  }
}

// Where answers leave prompts hardly any room, so that passes full of these end in few places; where nothing is decoded, so that places
// come free the faster the more prompts come; and where the prompts of a pass, which go first, leave room for all that decode.
TEST(AnOverload, begins_where_its_answers_are_all_and_where_there_are_none) {
  for (const Overload& of :
       {Overload{"trtllm", "random", "input: {uniform: [10, 20]}, output: 50", 2, "{tokens: 512}"},
        Overload{"vllm", "random", "input: {uniform: [100, 500]}, output: {uniform: [300, 1500]}", 2, "{tokens: 512}"},
        Overload{"vllm-2025", "random", "input: {uniform: [10, 80]}, output: {uniform: [50, 100]}", 1, "{tokens: 512}"},
        Overload{"sglang-2025", "random", "input: {uniform: [4000, 8000]}, output: 1", 1},
        Overload{"sglang-2025", "random", "input: 100, output: {uniform: [50, 100]}", 1, "{tokens: 512}"}})
    expect_begins_where_carried(of);
}

// Few places whose chain has not settled keep requests farther apart than so many as are seen can be.
TEST(AnOverload, of_few_places_is_an_answer) {
  EXPECT_GT(carried_of(overloaded_at({"vllm-2025", "random", "input: {uniform: [10, 20]}, output: 2", 2, "{sequences: 4}"}, 1000)), 0);
}

// A load that is just too much is more than what is carried, whatever that is far beyond it.
TEST(AnOverload, carries_less_than_comes) {
  const Overload drained{"vllm-2024", "least-requests", "input: 100, output: 5", 8, "{tokens: 16384}"};
  EXPECT_LT(carried_of(overloaded_at(drained, 1360)), 1360);
}

// Instances that take turns make prompts, which go first, share fewer passes than one with arrivals of its own has: what they carry was 3 %
// too much, being asked of one such and a step from there.
TEST(AnOverload, of_instances_in_turn_begins_where_carried) {
  expect_begins_where_carried({"vllm-2024", "least-requests", "input: 136, output: 14", 4});
}

// What a pool that decodes alone carries was asked where the sequences happened to be more than fit: up to six times as much.
TEST(AnOverload, of_decoding_alone_does_not_change_what_is_carried) {
  const auto overloaded = [](double rate_per_s) {
    return overloaded_of(
        fmt::format("model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  isolate: decode\n"
                    "  pools: {{all: {{role: decode, instances: 2, parallel: {{tp: 1}}}}}}\n"
                    "  load: {{arrivals: {{poisson: {} /s}}, input: 64, output: {{uniform: [500, 2000]}}, requests: 2000}}\n",
                    rate_per_s));
  };
  const double carried = carried_of(overloaded(1e6));
  EXPECT_EQ(overloaded(0.99 * carried), "");
  for (const double times : {1.01, 1.5, 4.0}) EXPECT_NEAR(carried_of(overloaded(times * carried)) / carried, 1, 1e-6) << times;
}

// Where prompts and answers share passes each is as full as it can be: 9.39/s an instance; were the decoding in them not counted, 9.81.
TEST(AnOverload, of_mixed_passes_is_carried_as_simulated) {
  const std::string text =
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {all: {role: both, instances: 2, parallel: {tp: 4}, precision: {compute: fp8, weights: fp8, kv: fp8}}}\n"
      "  load: {arrivals: {poisson: 24 /s}, input: 2048, output: 32, requests: 10000, warmup: 500}\n";
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const std::string overloaded = predict_serving(job, deploy(job), 2048).overloaded;
  EXPECT_NEAR(carried_of(overloaded) / outcome(text).result.requests_per_s, 1, 0.015);
}

// On the way to where it settles the chain of eight instances that take turns says that no more than seven sequences are ever there, and
// that eight are seen.
TEST(AnInstance, that_many_take_turns_with_is_predicted) {
  const std::string text =
      "model: llama3-70b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n"
      "  pools: {all: {role: both, instances: 8, parallel: {tp: 4}, precision: {compute: fp8, weights: fp8, kv: fp8}}}\n"
      "  load: {arrivals: {poisson: 200 /s}, input: 64, output: 32, requests: 8000, warmup: 500}\n";
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::ServingPrediction predicted = predict_serving(job, deploy(job), 64);
  const sim::ServingResult simulated = outcome(text).result;
  EXPECT_NEAR(predicted.result.ttft.mean_s / simulated.ttft.mean_s, 1, 0.05);
  EXPECT_NEAR(predicted.result.tpot.mean_s / simulated.tpot.mean_s, 1, 0.02);
}

TEST(APrompt, larger_than_the_cache_is_rejected) {
  const Outcome found =
      outcome(apart({.decode_more = ", kv_tokens: 800", .load = "{arrivals: at-once, input: 1000, output: 50, requests: 5}"}));
  EXPECT_EQ(found.result.rejected, 5);
  EXPECT_EQ(found.result.finished, 0);
}

}  // namespace
}  // namespace rehearse::tests
