// Models whose layers keep states of one size: what they take of memory and of the wire, against what vLLM says of itself and sums written
// out, what passes cost with them, and whether formula and simulation know the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "both_ways.hpp"
#include "config/data_dir.hpp"
#include "sim/kind/job_kind.hpp"
#include "sim/serving/capacity.hpp"
#include "sim/serving/serving_report.hpp"
#include "sim/serving/tune.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::tests {
namespace {

using workloads::InstancePlan;

InstancePlan hybrid_plan(const workloads::Model& model, int tp = 1) {
  InstancePlan plan;
  plan.model = model;
  plan.tp = tp;
  return plan;
}

workloads::Model shipped_hybrid(const std::string& name) {
  return workloads::read_model(config::Node::load_file(config::data_file("workloads/models", name)), name);
}

// Layers as Qwen3.5's: a gated delta rule but in every fourth.
workloads::Model gated_delta_model(int layers, int hidden, int heads, int kv_heads, int values) {
  return workloads::read_model(
      config::Node::load_text(fmt::format("{{layers: {}, hidden: {}, heads: {}, kv_heads: {}, head_dim: 256, ffn: 512, activation: swiglu, "
                                          "vocab: 248320, attention_gate: true, mixer: {{kind: gated_delta, heads: {}, head_dim: 128, "
                                          "groups: 16, state: 128, attention_every: 4}}}}",
                                          layers, hidden, heads, kv_heads, values),
                              "model.yaml"),
      "qwen");
}

sim::EngineHabits habits_of_vllm() {
  sim::EngineHabits habits;
  habits.page = 16;
  habits.pages_of_states = true;
  return habits;
}

// What vLLM logs: "Setting attention block size to 2096 tokens" of a model with 40 layers, a cache in 8 bits, two key/value heads and
// states in 32 bits (v0.17.0, on a blog of August 2026: kv-cache-size of hybrid models); 832 tokens, padded by 1.09 %, of one with four
// heads in 16 bits, 48 heads of values and 8 tokens tried. Of 30 states and 10 layers with attention three go with a page of these each.
TEST(States, take_pages_as_vllm_logs) {
  InstancePlan small = hybrid_plan(gated_delta_model(40, 2048, 16, 2, 32)), large = hybrid_plan(gated_delta_model(64, 5120, 24, 4, 48));
  small.precision.kv = workloads::DType::fp8;
  small.precision.state = large.precision.state = workloads::DType::fp32;
  EXPECT_EQ(page_tokens(small, habits_of_vllm(), 0), 2096);
  EXPECT_EQ(state_pages(small, habits_of_vllm(), 0), 3);
  EXPECT_EQ(page_tokens(large, habits_of_vllm(), 8), 832);
  EXPECT_NEAR(832 * kv_bytes_per_token(large).per_layer / state_bytes(large, 8).one - 1, 0.0109, 0.00005);
  EXPECT_EQ(state_pages(large, habits_of_vllm(), 8), 9 * 3);
}

// By hand, of Nemotron-H 8B: a state of 128 heads of 64 x 128 numbers and three taps of 8,192 values and twice 8 x 128 keys, in 16 bits; 24
// layers have it, and four keep 2 x 8 x 128 numbers of a token.
TEST(States, take_their_bytes) {
  const double state = 2 * 128.0 * 64 * 128, taps = 2 * 3 * (8192 + 2 * 1024.0), token = 2 * 2 * 8 * 128;
  for (const int tp : {1, 2, 4, 8}) {
    const InstancePlan plan = hybrid_plan(shipped_hybrid("nemotron-h-8b"), tp);
    EXPECT_EQ(state_bytes(plan).one, (state + taps) / tp);
    EXPECT_EQ(state_bytes(plan, 3).all, 4 * (state + 2 * taps) / tp);
    EXPECT_EQ(kv_bytes_per_token(plan).per_gpu, 4 * token / tp);
    sim::EngineHabits habits;
    habits.page = 16;
    EXPECT_EQ(state_pages(plan, habits, 0), static_cast<std::int64_t>(std::ceil(24 * (state + taps) / (16 * 4 * token))));
    EXPECT_EQ(page_tokens(plan, habits, 0), 16);
  }
  EXPECT_EQ(state_bytes(hybrid_plan(shipped_hybrid("llama3-8b"))).all, 0);
  EXPECT_EQ(state_pages(hybrid_plan(shipped_hybrid("llama3-8b")), habits_of_vllm(), 0), 0);
  EXPECT_EQ(page_tokens(hybrid_plan(shipped_hybrid("llama3-8b")), habits_of_vllm(), 0), 16);
}

// Every rank gets the states of its heads, whoever has them.
TEST(States, arrive_whole) {
  for (const int from : {1, 2, 4, 8}) {
    for (const int to : {1, 2, 4, 8}) {
      const InstancePlan sender = hybrid_plan(shipped_hybrid("nemotron-h-8b"), from),
                         receiver = hybrid_plan(shipped_hybrid("nemotron-h-8b"), to);
      std::map<int, double> got, gave;
      for (const workloads::KvPair& pair : kv_pairs(sender, receiver)) {
        got[pair.to] += pair.state_bytes;
        gave[pair.from] += pair.state_bytes;
      }
      ASSERT_EQ(got.size(), static_cast<std::size_t>(to));
      for (const auto& [rank, bytes] : got) EXPECT_DOUBLE_EQ(bytes, 24 * state_bytes(receiver).one);
      for (const auto& [rank, bytes] : gave) EXPECT_DOUBLE_EQ(bytes, 24 * state_bytes(sender).one);
    }
  }
}

sim::ServingJob hybrid_job(const std::string& pools, const std::string& load, const std::string& model = "nemotron-h-8b",
                           const std::string& engine = "vllm") {
  return sim::read_serving_job(
      config::Node::load_text(fmt::format("model: {}\ncluster: dgx-h100-ndr400\nsoftware: {}\nserving:\n  pools: {{{}}}\n  load: {{{}}}\n",
                                          model, engine, pools, load),
                              "job.yaml"),
      "job");
}

const std::string some_load = "arrivals: at-once, input: 600, output: 8, requests: 4";

// A step reads a state and writes it, whatever the context; of 52 layers four read keys and values.
TEST(States, are_read_and_written_by_every_step) {
  const sim::ServingJob job = hybrid_job("all: {role: both}", some_load);
  const sim::Deployment deployment = deploy(job);
  const sim::OperatorPassPrice& price = *deployment.pools.front().price;
  const auto at = [&](double decodes, double context) {
    sim::PassShape shape;
    shape.decodes = decodes;
    shape.context = context;
    return price.parts(shape).attention_s;
  };
  const double few = at(64, 64 * 100), more = at(64, 64 * 1100);
  sim::ServingJob plain =
      hybrid_job("all: {role: both}", some_load,
                 "{name: four, layers: 4, hidden: 4096, heads: 32, kv_heads: 8, ffn: 21504, activation: relu2, vocab: 131072}");
  const sim::Deployment four = deploy(plain);
  sim::PassShape shape;
  shape.decodes = 64;
  shape.context = 64.0 * 100;
  const double short_s = four.pools.front().price->parts(shape).attention_s;
  shape.context = 64.0 * 1100;
  EXPECT_NEAR(more - few, four.pools.front().price->parts(shape).attention_s - short_s, 1e-12);
  // 64 sequences more move 64 x 24 x 2 states, of 2 MiB each, and no more than a tenth beside them; at the bandwidth of an H100 and slower.
  const double moved = 64 * 24 * 2 * 2.0 * 1024 * 1024, more_s = at(128, 128 * 100) - at(64, 64 * 100);
  EXPECT_GT(more_s, moved / 3.35e12);
  EXPECT_LT(more_s, 1.5 * moved / 3.35e12);
}

// Prompts take the scan, which grows with their tokens alone, and with every piece of one a state that is fetched and kept.
TEST(States, are_scanned_once_by_token) {
  const sim::ServingJob job = hybrid_job("all: {role: both}", some_load);
  const sim::Deployment deployment = deploy(job);
  const auto scan_s = [&](double tokens, double prompts) {
    sim::PassShape shape;
    shape.prompt_tokens = tokens;
    shape.chunks = prompts;
    shape.prompt_pairs = 1;  // next to no attention
    return deployment.pools.front().price->parts(shape).attention_s;
  };
  const double once = scan_s(4096, 1) - scan_s(2048, 1), twice = scan_s(6144, 1) - scan_s(4096, 1);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(twice / once, 1, 0.02);
  EXPECT_GT(scan_s(4096, 8), scan_s(4096, 1));
}

// vllm-project/vllm pull request 27299, "Original" on one H100: millions of tokens per second of the forward scan, by their number; 128
// heads of 64, one group, states of 128, chunks of 256.
TEST(States, are_scanned_as_fast_as_published) {
  const sim::ServingJob job = hybrid_job("all: {role: both}", some_load);
  workloads::MixerShare share;
  share.heads = share.state = 128;
  share.head_dim = 64;
  share.groups = 1;
  share.chunk = 256;
  for (const auto& [tokens, millions_per_s] :
       {std::pair{8192, 12.62}, {16384, 12.92}, {32768, 11.80}, {65536, 11.07}, {131072, 10.70}, {262144, 10.82}}) {
    share.tokens = tokens;
    double seconds = 0;
    for (const workloads::Operator& op : workloads::MixerRegistry::get("mamba2").forward(share))
      seconds += op.times * job.parts.front().gpu.cost->seconds(op);
    EXPECT_NEAR(tokens / seconds / (1e6 * millions_per_s), 1, 0.12) << tokens;
  }
}

// As many sequences at once as pages say: of 24 states a sequence four of a page each, six pages of 528 tokens, and two of them for 600.
TEST(States, leave_room_for_so_many) {
  const sim::ServingJob job = hybrid_job("all: {role: both, kv_tokens: 40000, overflow: reserve}",
                                         "arrivals: {closed: 30}, input: 600, output: 200, requests: 120");
  const sim::Deployment deployment = deploy(job);
  const sim::InstanceRules& rules = deployment.pools.front().rules;
  EXPECT_EQ(rules.state_pages, 6);
  EXPECT_EQ(rules.page, 528);
  EXPECT_EQ(rules.pages, 40000 / 528);
  const sim::ServingSetup setup = setup_of(job, deployment);
  const sim::ServingRun run = simulate_serving(setup);
  const std::int64_t most = rules.pages / (6 + 2);
  EXPECT_EQ(run.pools.front().instances.front().most_pages, most * 8);
}

// Nemotron-H 8B, and what a promise needs that the formula gives.
TEST(States, are_in_both_methods) {
  for (const std::string engine : {"vllm", "sglang", "trtllm"}) {
    const auto [formula, simulated] = both_ways(hybrid_job(
        "all: {role: both, instances: 2}", "arrivals: {poisson: 4 /s}, input: 2048, output: 128, requests: 4000", "nemotron-h-8b", engine));
    EXPECT_NEAR(formula.ttft.mean_s / simulated.ttft.mean_s, 1, 0.05) << engine;
    EXPECT_NEAR(formula.tpot.mean_s / simulated.tpot.mean_s, 1, 0.02) << engine;
  }
}

// Apart, a request's bytes on the wire are its pages' and its states'.
TEST(States, are_handed_over) {
  const sim::ServingJob job = hybrid_job("p: {role: prefill}, d: {role: decode, parallel: {tp: 2}}",
                                         "arrivals: {poisson: 2 /s}, input: 2048, output: 64, requests: 2000");
  const auto [formula, simulated] = both_ways(job);
  EXPECT_NEAR(formula.ttft.mean_s / simulated.ttft.mean_s, 1, 0.05);
  EXPECT_NEAR(formula.tpot.mean_s / simulated.tpot.mean_s, 1, 0.02);
  const sim::Deployment deployment = deploy(job);
  const InstancePlan& sender = job.pools.front().plan;
  const double whole = std::ceil(2048.0 / 528) * 528 * kv_bytes_per_token(sender).per_gpu + 24 * state_bytes(sender).one;
  EXPECT_NEAR(deployment.transfers->wire_bytes(2048, 0), whole, 1);
  EXPECT_EQ(deployment.transfers->wire_bytes(0, 0), 0);
}

// Attention that stands between mixers, experts beside them: Qwen3-Next on one node.
TEST(States, stand_beside_experts) {
  const auto [formula, simulated] =
      both_ways(hybrid_job("all: {role: both, parallel: {tp: 4, ep: 4}}",
                           "arrivals: {poisson: 2 /s}, input: 2048, output: 128, requests: 2000", "qwen3-next-80b-a3b"));
  EXPECT_NEAR(formula.ttft.mean_s / simulated.ttft.mean_s, 1, 0.06);
  EXPECT_NEAR(formula.tpot.mean_s / simulated.tpot.mean_s, 1, 0.03);
}

// Weights of an instance are those of the model: in 16 bits two bytes a parameter.
TEST(States, stand_beside_all_weights) {
  for (const char* name : {"nemotron-h-8b", "qwen3-next-80b-a3b", "nemotron3-nano-30b-a3b", "nemotron3-super-120b-a12b"}) {
    const sim::ServingJob job = hybrid_job("all: {role: both}", some_load, name);
    EXPECT_NEAR(deploy(job).pools.front().memory.weights / (2 * count_parameters(job.model).total), 1, 1e-3) << name;
  }
}

// What is tuned is written as a job that keeps them so; sides that would keep them unlike one another are no deployment.
TEST(States, are_tuned_alike_on_both_sides) {
  sim::KindRequest request;
  request.name = "job";
  request.document = config::Node::load_text(
      "model: nemotron-h-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {p: {role: prefill}, d: {role: decode}}\n"
      "  load: {arrivals: {poisson: 2 /s}, input: 2048, output: 64, requests: 200}\n  slo: {ttft: 1 s, tpot: 40 ms}\n"
      "tune: {inventory: 4, tp: [1], confirm: 1, precision: [{state: fp32}, {state: fp16}]}\n",
      "job.yaml");
  request.progress = [](double) {};
  const sim::KindAnswer answer = sim::JobKindRegistry::get("serving").answer("tune", request);
  const auto& report = answer.report.get<sim::ServingReport>();
  int apart = 0;
  for (const sim::TunedDeployment& one : report.tuning->best) {
    apart += one.pools.size() > 1 ? 1 : 0;
    for (const sim::Pool& pool : one.pools) EXPECT_EQ(pool.plan.precision.state, one.pools.front().plan.precision.state);
  }
  EXPECT_GT(apart, 0);
  ASSERT_TRUE(report.tuning->chosen);
  const sim::ServingJob plan = sim::read_serving_job(config::Node::load_text(report.plan_yaml, "plan.yaml"), "plan");
  EXPECT_EQ(plan.pools.front().plan.precision.state, report.tuning->best[*report.tuning->chosen].pools.front().plan.precision.state);
}

}  // namespace
}  // namespace rehearse::tests
