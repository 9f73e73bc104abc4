// Each with its place and its reason.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "deployments.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/report/gzip.hpp"
#include "sim/serving/deployment.hpp"

namespace rehearse::tests {
namespace {

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(sim::deploy(sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job")));
  } catch (const config::InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string with(const std::string& what, const std::string& instead) {
  std::string text = small_job;
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

void expect_refused(const std::string& text, const std::string& place, const std::string& why) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(place), std::string::npos) << message;
  EXPECT_NE(message.find(why), std::string::npos) << message;
}

TEST(BadServingJobsAreRefused, about_keys_of_other_kinds) {
  expect_refused(std::string(small_job) + "batch: {global: 8, micro: 1, sequence: 4096}\n", "job.yaml:8:1", "unknown key 'batch'");
}

TEST(BadServingJobsAreRefused, about_layers_without_a_cache) {
  const auto refused = [](const std::string& model, const std::string& pool, const std::string& place, const std::string& why) {
    std::string text = with("model: llama3-8b", "model: " + model);
    expect_refused(text.replace(text.find("role: both"), 10, "role: both" + pool), place, why);
  };
  refused(
      "{name: m, layers: 2, hidden: 64, heads: 4, ffn: 64, activation: gelu, vocab: 64, mixer: {kind: mamba2, heads: 2, head_dim: 64, "
      "groups: 2, state: 64}}",
      "", "job.yaml:1:", "model 'm' has no layer with attention: it is trained here, not served");
  refused("nemotron-h-8b", ", prefix_cache: true", "job.yaml:6:", "states of mixers are not kept by blocks of prompts");
  refused("nemotron-h-8b", ", overflow: reserve, speculative: {tokens: 2, acceptance: 0.5, draft: nemotron-h-8b}",
          "job.yaml:6:", "model 'nemotron-h-8b' has mixers: it proposes no tokens here");
  const auto planned = [&](const std::string& plan, const std::string& why) {
    std::string text = with("model: llama3-8b", "model: nemotron-h-8b");
    expect_refused(text.replace(text.find("{tp: 1}"), 7, plan), "job.yaml:6:", why);
  };
  planned("{tp: 1, pp: 2}", "layers of several kinds stand on one stage, not on 2 (pp)");
  planned("{tp: 16}", "heads and groups of the mixer (128 and 8) cannot be divided evenly over tp 16");
  std::string apart = with("model: llama3-8b", "model: nemotron-h-8b");
  apart.replace(apart.find("role: both"), 10, "role: prefill");
  apart.replace(apart.find("    all:"), 8, "    d: {role: decode}\n    all:");
  expect_refused(apart + "  transfer: {mode: layerwise}\n", "job.yaml:9:", "states of mixers are whole when their prompt is");
  apart.replace(apart.find("role: decode"), 12, "role: decode, precision: {state: fp32}");
  expect_refused(apart, "job.yaml:6:", "handed over as they are: pool all keeps them in bf16, pool d in fp32");
  refused("nemotron-h-8b", ", kv_tokens: 500", "job.yaml:6:", "a cache of 500 tokens has no page of 528");
  expect_refused(with("kv: bf16", "kv: bf16, state: fp32"), "job.yaml:6:", "model 'llama3-8b' has no mixers, whose states this is of");
  expect_refused(std::string(small_job) + "tune: {precision: [{}, {state: fp16}]}\n",
                 "job.yaml:8:", "model 'llama3-8b' has no mixers, whose states this is of");
  EXPECT_EQ(refusal(with("kv: bf16", "kv: bf16, state: bf16")), "accepted");  // as resolved jobs have it
  refused("llama3-8b",
          ", overflow: reserve, speculative: {tokens: 2, acceptance: 0.5, draft: {name: small, layers: 2, hidden: 64, heads: 0, ffn: 64, "
          "activation: gelu, vocab: 128256}}",
          "job.yaml:6:", "model 'small' has no layer with attention");
}

TEST(BadServingJobsAreRefused, about_pools) {
  expect_refused(with("role: both", "role: prefill"), "job.yaml:5:", "a pool of role prefill needs its other side");
  expect_refused(with("{tp: 1}", "{tp: 3}"), "job.yaml:6:", "32 attention heads cannot be divided evenly over tp 3");
  expect_refused(with("{tp: 1}", "{tp: 12}"), "job.yaml:6:", "tp 12 is more than a domain of 8 GPUs, and not whole ones");
  expect_refused(with("{tp: 1}", "{tp: 1, ep: 2}"), "job.yaml:6:", "ep is for models with experts");
  expect_refused(with("software: vllm", "software: megatron-core"), "job.yaml:3:11", "software 'megatron-core' does not serve");
  expect_refused(with("role: both", "role: both, part: rich"), "job.yaml:6:", "the cluster has no parts");
  expect_refused(with("role: both", "role: both, kv_tokens: 15, kv: {page: 16}"), "job.yaml:6:", "a cache of 15 tokens has no page of 16");
  expect_refused(with("role: both", "role: both, overflow: spill"), "job.yaml:6:", "overflow cannot be 'spill'");
  expect_refused(with("role: both", "role: both, batching: static, overflow: swap"),
                 "job.yaml:6:", "static batches take the room of whole answers");
  expect_refused(with("    all: {role: both", "    more: {role: prefill}\n    all: {role: prefill"), "job.yaml:5:", "needs its other side");
  expect_refused(with("cluster: dgx-h100-ndr400", "cluster: {parts: {b: {cluster: tpu-v6e-256, nodes: 2}}}"),
                 "tpu-v6e-256.yaml:", "the torus has 256 routers but the cluster 2 nodes");
  const std::string several = with("    all: {role: both", "    d: {role: decode}\n    p: {role: prefill}\n    all: {role: prefill");
  expect_refused(several + "  isolate: both\n", "job.yaml:10:", "there is no pool with role both");
  expect_refused(with("    all: {role: both", "    d: {role: decode}\n    all: {role: both"),
                 "job.yaml:5:", "pools of role both stand beside none of role decode");
  expect_refused(with("    all: {role: both", "    more: {role: both}\n    all: {role: both") + "  transfer: {path: host-staged}\n",
                 "job.yaml:9:", "nothing is transferred where the same instances do both");
  expect_refused(with("    all: {role: both", "    more: {role: decode}\n    all: {overflow: swap, role: prefill"),
                 "job.yaml:7:", "nothing is swapped");
}

TEST(BadServingJobsAreRefused, about_tokens_that_are_tried) {
  const auto speculative = [](const std::string& keys, const std::string& more = "overflow: reserve") {
    return with("instances: 1", "instances: 1, " + more + ", speculative: {" + keys + "}");
  };
  expect_refused(speculative("tokens: 4"), "job.yaml:6:", "acceptance");
  expect_refused(speculative("acceptance: 0.8"), "job.yaml:6:", "tokens");
  expect_refused(speculative("tokens: 0, acceptance: 0.8"), "job.yaml:6:", "must be between 1 and 64");
  expect_refused(speculative("tokens: 4, acceptance: 1.2"), "job.yaml:6:", "must be between 0 and 1");
  expect_refused(speculative("tokens: 4, acceptance: 0.8, drafts: x"), "job.yaml:6:", "unknown key 'drafts'");
  expect_refused(speculative("tokens: 4, acceptance: 0.8", "overflow: recompute"), "job.yaml:6:", "takes the room of its whole answer");
  expect_refused(speculative("tokens: 4, acceptance: 0.8", "batching: static"), "job.yaml:6:", "takes the room of its whole answer");
  expect_refused(speculative("tokens: 4, acceptance: 0.8, draft: llama3-9b"), "job.yaml:6:", "llama3-9b");
  expect_refused(speculative("tokens: 4, acceptance: 0.8, draft: llama2-7b"), "job.yaml:6:", "has the same vocabulary");
  const std::string sides =
      "    p: {role: prefill}\n    all: {role: decode, overflow: reserve, speculative: {tokens: 4, acceptance: 0.8, draft: llama3-8b}";
  expect_refused(with("    all: {role: both", sides), "job.yaml:7:", "needs the cache of the prompt");
  expect_refused(with("    all: {role: both",
                      "    d: {role: decode}\n    all: {role: prefill, overflow: reserve, speculative: {tokens: 4, acceptance: 0.8}"),
                 "job.yaml:7:", "decodes nothing");
}

TEST(BadServingJobsAreRefused, about_an_unknown_gpu) {
  expect_refused(with("cluster: dgx-h100-ndr400", "cluster: {gpu: h300, gpus_per_node: 8}"), "job.yaml:2:", "unknown gpu 'h300'");
}

TEST(BadServingJobsAreRefused, about_loads) {
  expect_refused(with("{poisson: 2 /s}", "{poisson: 2}"), "job.yaml:7:", "a unit is missing");
  expect_refused(with("{poisson: 2 /s}", "{poisson: 0 /s}"), "job.yaml:7:", "serving.load.arrivals.poisson must be above 0 /s, not '0 /s'");
  expect_refused(with("{poisson: 2 /s}", "{poisson: 2 /s, closed: 3}"), "job.yaml:7:", "there is 'poisson' already");
  expect_refused(with("output: 100", "output: 0"), "job.yaml:7:", "must be between 1 and");
  expect_refused(with("output: 100", "output: {uniform: [0, 50]}"), "job.yaml:7:", "must be between 1 and");
  expect_refused(with("input: 1000", "input: {uniform: [100, 50]}"), "job.yaml:7:", "must be between 100 and");
  expect_refused(with("input: 1000", "input: {lognormal: {median: 1000, p90: 2000}, max: 999}"), "job.yaml:7:", "must be between 1000 and");
  expect_refused(with("requests: 200", "requests: 200, warmup: 200"), "job.yaml:7:", "must be between 0 and 199");
  expect_refused(with("{poisson: 2 /s}", "{trace: nowhere.csv}"), "job.yaml:7:", "cannot read 'nowhere.csv'");
  expect_refused(std::string(small_job) + "simulation: {granularity: operator}\n", "job.yaml:8:", "cannot be 'operator'");
}

class ATrace : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("rehearse-trace-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string job(const std::string& content, const std::string& name = "trace.csv") {
    std::ofstream(folder_ / name) << content;
    return with("arrivals: {poisson: 2 /s}, input: 1000, output: 100, requests: 200",
                "arrivals: {trace: " + (folder_ / name).string() + "}");
  }
  static std::string packed(const std::string& content) {
    std::ostringstream out;
    sim::GzipStream gzip(out);
    gzip << content;
    gzip.finish();
    return out.str();
  }
  static std::vector<workloads::Request> requests(const std::string& job) {
    return *sim::read_serving_job(config::Node::load_text(job, "job.yaml"), "job").load.trace;
  }
  std::filesystem::path folder_;
};

TEST_F(ATrace, is_refused_at_its_line) {
  expect_refused(job("a,b,c\n1,2,3\n"), "trace.csv:1:1", "these are not the columns of a request trace");
  expect_refused(job("arrival_s,input_tokens,output_tokens\n1,2,3\n0.5,2,3\n"), "trace.csv:3:1", "comes before the one above it");
  expect_refused(job("arrival_s,input_tokens,output_tokens\n1,2,0\n"), "trace.csv:2:5", "output_tokens must be a number from 1");
  expect_refused(job("arrival_s,input_tokens,output_tokens\n1,2\n"), "trace.csv:2:1", "2 cells in a table of 3 columns");
  expect_refused(job("num_prefill_tokens,num_decode_tokens\n1,2\n"), "trace.csv:1:1", "lengths but no times");
  EXPECT_EQ(refusal(job("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n")), "accepted");
}

TEST_F(ATrace, of_json_lines_is_refused_at_its_line) {
  const auto lines = [&](const std::string& content) { return job(content, "trace.jsonl"); };
  const std::string good = R"({"timestamp": 10, "input_length": 5, "output_length": 2, "hash_ids": [1, 2]})"
                           "\n";
  expect_refused(lines(good + "{\"timestamp\": 10,\n"), "trace.jsonl:2:", "this is no JSON object");
  expect_refused(lines(good + "7\n"), "trace.jsonl:2:1", "a request is a JSON object");
  expect_refused(lines(good + R"({"timestamp": 10, "input_length": 5})"), "trace.jsonl:2:1", "key 'output_length' is missing");
  expect_refused(lines(R"({"timestamp": 10, "input_length": 0, "output_length": 2})"), "trace.jsonl:1:19",
                 "input_length must be a number from 1");
  expect_refused(lines(R"({"timestamp": "10", "input_length": 5, "output_length": 2})"), "trace.jsonl:1:2", "timestamp must be a number");
  expect_refused(lines(R"({"timestamp": 10, "input_length": 5.5, "output_length": 2})"), "trace.jsonl:1:19", "must be a whole number");
  expect_refused(lines(R"({"timestamp": 10, "input_lenght": 5, "output_length": 2})"), "trace.jsonl:1:19", "did you mean 'input_length'?");
  expect_refused(lines(good + R"({"timestamp": 9, "input_length": 5, "output_length": 2})"), "trace.jsonl:2:1",
                 "comes before the one above it");
  expect_refused(lines(good + "{}"), "trace.jsonl:2:1", "key 'timestamp' is missing");
}

TEST_F(ATrace, of_json_lines_is_in_milliseconds_and_its_hashes_are_said_to_be_unused) {
  const std::string text = job(R"({"timestamp": 500, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]})"
                               "\n\n"
                               R"({"timestamp": 3500, "input_length": 7, "output_length": 1})"
                               "\n",
                               "trace.jsonl");
  const auto read = requests(text);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].arrival_s, 0);
  EXPECT_EQ(read[1].arrival_s, 3);
  EXPECT_EQ(read[0].tokens.input, 6955);
  EXPECT_EQ(read[0].tokens.output, 52);
  const auto notes = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job").notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes.front().find("block hashes of"), std::string::npos) << notes.front();
}

// Hashes of the blocks of all prompts, in either format, and pages and a cache that they can be kept in.
TEST_F(ATrace, of_prompts_that_come_again_is_refused_at_its_line) {
  const auto keeping = [&](const std::string& content, const std::string& name, const std::string& keys = "") {
    const std::string text = job(content, name), one = "instances: 1";
    return std::string(text).replace(text.find(one), one.size(), one + ", prefix_cache: true" + keys);
  };
  const std::string good = R"({"timestamp": 10, "input_length": 1025, "output_length": 2, "hash_ids": [1, 2, 3]})"
                           "\n";
  const auto lines = [&](const std::string& second) { return keeping(good + second, "trace.jsonl"); };
  EXPECT_EQ(refusal(lines("")), "accepted");
  expect_refused(lines(R"({"timestamp": 10, "input_length": 5, "output_length": 2})"), "trace.jsonl:2:1", "has no hash_ids");
  expect_refused(lines(R"({"timestamp": 10, "input_length": 5, "output_length": 2, "hash_ids": [1, 2]})"), "trace.jsonl:2:1",
                 "block hashes: 2, and a prompt of 5 tokens has 1");
  expect_refused(lines(R"({"timestamp": 10, "input_length": 5, "output_length": 2, "hash_ids": [-1]})"), "trace.jsonl:2:58",
                 "must be a list of whole numbers");
  expect_refused(lines(R"({"timestamp": 10, "input_length": 5, "output_length": 2, "hash_ids": 7})"), "trace.jsonl:2:58",
                 "must be a list of whole numbers");
  const std::string titles = "timestamp_ms,input_tokens,output_tokens";
  EXPECT_EQ(refusal(keeping(titles + ",blocks\n0,1025,3,7 8 9\n", "trace.csv")), "accepted");
  EXPECT_EQ(refusal(keeping(titles + ",block_hashes_of_512_tokens\n0,512,3,7\n", "trace.csv")), "accepted");
  expect_refused(keeping(titles + "\n0,512,3\n", "trace.csv"), "trace.csv:2:1", "has no column of block hashes");
  expect_refused(keeping(titles + ",blocks\n0,1025,3,7 x 9\n", "trace.csv"), "trace.csv:2:10", "block hashes are whole numbers");
  expect_refused(keeping(titles + ",blocks\n0,1025,3,7 8\n", "trace.csv"), "trace.csv:2:1",
                 "block hashes: 2, and a prompt of 1025 tokens has 3");
  expect_refused(keeping(titles + ",blocks\n0,1025,3,\n", "trace.csv"), "trace.csv:2:1",
                 "block hashes: 0, and a prompt of 1025 tokens has 3");
  expect_refused(keeping(good, "trace.jsonl", ", kv: {page: 24}"), "job.yaml:6:", "a block of 512 tokens is no number of pages of 24");
  expect_refused(keeping(good, "trace.jsonl", ", overflow: swap"), "job.yaml:6:", "pages leave for the host's memory");
  expect_refused(with("instances: 1", "instances: 1, prefix_cache: true"), "job.yaml:6:", "needs a trace with the hashes");
  const std::string again = "load: {arrivals: {poisson: 2 /s}, input: {from: " + (folder_ / "trace.jsonl").string() +
                            "}, output: 100, requests: 2}",
                    more = keeping(good, "trace.jsonl");
  expect_refused(more.substr(0, more.find("load:")) + again + "\n", "job.yaml:6:", "the trace has 1 prompts, which would come again");
  expect_refused(job(good, "trace.jsonl") + "  router: {prefill: prefix}\n", "job.yaml:8:", "no pool of that side has prefix_cache");
}

// What was packed is what is read, whatever the format; half of it, or a byte of it changed, is told from the whole.
TEST_F(ATrace, may_be_packed) {
  std::string table = "arrival_s,input_tokens,output_tokens\n", lines;
  for (int i = 0; i < 20'000; ++i) {
    table += fmt::format("{},{},{}\n", i, i % 997 + 1, i % 89 + 1);
    lines += fmt::format(R"({{"timestamp": {}, "input_length": {}, "output_length": {}}})"
                         "\n",
                         i * 1000, i % 997 + 1, i % 89 + 1);
  }
  const auto plain = requests(job(table)), one = requests(job(packed(table), "trace.csv.gz")),
             other = requests(job(packed(lines), "trace.jsonl.gz"));
  ASSERT_EQ(plain.size(), 20'000U);
  for (const auto* read : {&one, &other}) {
    ASSERT_EQ(read->size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ((*read)[i].arrival_s, plain[i].arrival_s);
      ASSERT_EQ((*read)[i].tokens.input, plain[i].tokens.input);
      ASSERT_EQ((*read)[i].tokens.output, plain[i].tokens.output);
    }
  }
  const std::string whole = packed(lines);
  expect_refused(job(whole.substr(0, whole.size() / 2), "half.jsonl.gz"), "half.jsonl.gz:", "cut off or damaged");
  std::string damaged = packed(table);
  damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
  expect_refused(job(damaged, "bad.csv.gz"), "bad.csv.gz:", "error");
}

TEST(BadServingJobsAreRefused, about_goals_of_tune) {
  const auto with_goal = [](const std::string& goal) { return std::string(small_job) + "tune: {goal: " + goal + "}\n"; };
  expect_refused(with_goal("speed"), "job.yaml:8:14", "cannot be 'speed'");
  expect_refused(with_goal("[cost, cost]"), "job.yaml:8:21", "named twice");
  expect_refused(with_goal("[cost, goodput]"), "job.yaml:8:14", "goodput is a goal alone");
  expect_refused(with_goal("[]"), "job.yaml:8:14", "a goal is wanted");
  EXPECT_EQ(refusal(with_goal("[tpot, cost]")), "accepted");
}

}  // namespace
}  // namespace rehearse::tests
