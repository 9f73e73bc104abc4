// Passes layer by layer: as long as a pass in one piece where nothing is shared; where a cache crosses the same links both become slower.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "hand_over_jobs.hpp"

namespace rehearse::tests {
namespace {

using sim::RequestState;
using sim::Role;
using sim::ServingRun;
using sim::ServingSetup;
using sim::Stage;

constexpr double shared_eps = 1e-9;

// Decode passes of a second, of which 0.6 s send 600 bytes, beside the rest or after it.
class SendingPrice final : public sim::PassPrice {
 public:
  explicit SendingPrice(bool beside) : beside_(beside) {}
  [[nodiscard]] double seconds(const sim::PassShape&) const override { return 1; }
  [[nodiscard]] sim::DecodeLine decode(int) const override { return {.base_s = 1}; }
  [[nodiscard]] sim::PassNetwork network(const sim::PassShape&) const override { return {0.6, 600, beside_}; }

 private:
  bool beside_;
};

// Prompts at a token per millisecond, caches of a byte per token over the link that decoding sends over, too: 1000 bytes a second.
ServingSetup sending(int layers, bool beside, double second_s) {
  const auto pool = [](Role role, std::shared_ptr<const sim::PassPrice> price) {
    sim::InstanceRules rules;
    rules.role = role;
    rules.sequences = 64;
    rules.tokens = 1000;
    rules.pages = 10'000;
    rules.one_by_one = true;
    return sim::PoolSetup{"pool", rules, std::move(price), 1};
  };
  ServingSetup setup;
  setup.pools = {pool(Role::prefill, std::make_shared<ConstantPrice>(1e-3, 0)), pool(Role::decode, std::make_shared<SendingPrice>(beside))};
  setup.requests = {{0, {100, 2}}, {second_s, {100, 1}}};
  setup.transfers = std::make_shared<OneLink>(OneLink::Habits{});
  setup.layered = {{}, {.layers = layers, .ports = {{0, 0}}}};
  return setup;
}

double moving_s(const RequestState& request) { return request.spent_s[static_cast<std::size_t>(Stage::transferring)]; }

// The first cache is there at 0.2 s. One layer computes to 0.6 s and sends to 1.2 s, alone. The second cache wants the link from 0.7 s on:
// of its 100 bytes and the pass's 600, of which 100 are gone, 100 each go by 0.9 s, and the pass's last 400 by 1.3 s.
TEST(LayersShare, a_link_with_a_cache) {
  const ServingRun run = simulate_serving(sending(1, false, 0.6));
  EXPECT_NEAR(moving_s(run.requests[0]), 0.1, shared_eps);
  EXPECT_NEAR(moving_s(run.requests[1]), 0.2, shared_eps);
  EXPECT_NEAR(run.requests[0].first_s, 1.3, shared_eps);
  EXPECT_NEAR(run.requests[0].last_s, 2.3, shared_eps);
  EXPECT_NEAR(run.pools[1].instances[0].busy_s, 1.1 + 1, shared_eps);
}

// Two layers: 0.2 s of computing and 0.3 s of sending each. From 0.45 s the cache takes half of what is left of the first one's 300 bytes.
TEST(LayersShare, a_link_with_a_cache_one_by_one) {
  const ServingRun run = simulate_serving(sending(2, false, 0.35));
  EXPECT_NEAR(moving_s(run.requests[1]), 0.2, shared_eps);
  EXPECT_NEAR(run.requests[0].first_s, 1.3, shared_eps);
  // In the second one's computing the link is free.
  const ServingRun free = simulate_serving(sending(2, false, 0.62));
  EXPECT_NEAR(moving_s(free.requests[1]), 0.1, shared_eps);
  EXPECT_NEAR(free.requests[0].first_s, 1.2, shared_eps);
}

// Beside the work the same delay hides behind it: 600 bytes from 0.2 s to 0.9 s, of a second.
TEST(LayersShare, nothing_that_shows_where_work_covers_it) {
  const ServingRun run = simulate_serving(sending(1, true, 0.3));
  EXPECT_NEAR(moving_s(run.requests[1]), 0.2, shared_eps);
  EXPECT_NEAR(run.requests[0].first_s, 1.2, shared_eps);
}

// Whether a decode pass of the job's last pool sends anything between nodes.
bool sends(const std::string& text) {
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  return deploy(job).pools.back().price->network({.decodes = 1, .context = 10}).bytes > 0;
}

ServingRun run_by(const std::string& text, const std::string& granularity, const std::string& faults = "[]") {
  const sim::ServingJob job = sim::read_serving_job(
      config::Node::load_text(text + "simulation: {granularity: " + granularity + ", faults: " + faults + "}\n", "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  EXPECT_EQ(deployment.misfit, "");
  return simulate_serving(setup_of(job, deployment));
}

std::string wide_job(const std::string& load, const std::string& prefill, const std::string& decode, const std::string& moe) {
  return fmt::format(
      "model: deepseek-v3\ncluster: h800-deepseek\nsoftware: custom\nserving:\n  pools:\n"
      "    prefill: {{role: prefill, parallel: {}, precision: {{compute: fp8, weights: fp8, kv: bf16}}, moe: {}}}\n"
      "    decode: {{role: decode, parallel: {}, precision: {{compute: fp8, weights: fp8, kv: bf16}}, moe: {}}}\n"
      "  load: {}\n",
      prefill, moe, decode, moe, load);
}

// One client: a cache moves while nothing is computed. Every request is as long in one piece and layer by layer.
TEST(LayersShare, nothing_where_one_client_asks) {
  std::mt19937 random(23);
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE(trial);
    const auto pick = [&](const std::vector<std::string>& from) {
      return from[std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random)];
    };
    const std::string load = fmt::format("{{arrivals: {{closed: 1}}, input: {}, output: {}, requests: 3}}",
                                         pick({"100", "3000", "{uniform: [10, 9000]}"}), pick({"2", "9", "{uniform: [2, 20]}"}));
    const std::string moe =
        fmt::format("{{dispatcher: {}, overlap: {}}}", pick({"alltoall", "hierarchical", "allgather"}), pick({"true", "false"}));
    const std::string text = trial % 4 == 0 ? hand_over_job("after-prefill", load, 2048, "", "{tp: 16}", pick({"{tp: 8}", "{tp: 16}"}))
                                            : wide_job(load, pick({"{tp: 1, dp: 32, ep: 32}", "{tp: 4, dp: 8, ep: 32}"}),
                                                       pick({"{tp: 1, dp: 64, ep: 64}", "{tp: 8, dp: 4, ep: 32}"}), moe);
    EXPECT_EQ(sends(text), text.find("decode, parallel: {tp: 8}") == std::string::npos);
    const ServingRun whole = run_by(text, "iteration"), layers = run_by(text, "layer");
    for (std::size_t i = 0; i < whole.requests.size(); ++i) {
      ASSERT_EQ(layers.requests[i].stage, Stage::done);
      ASSERT_NEAR(layers.requests[i].first_s, whole.requests[i].first_s, 1e-9 * whole.requests[i].first_s) << text;
      ASSERT_NEAR(layers.requests[i].last_s, whole.requests[i].last_s, 1e-9 * whole.requests[i].last_s) << text;
    }
    EXPECT_NEAR(layers.pools[1].gaps.mean_s(), whole.pools[1].gaps.mean_s(), 1e-9);
    EXPECT_NEAR(layers.pools[0].instances[0].busy_s, whole.pools[0].instances[0].busy_s, 1e-9);
  }
}

// Passes of replicas on two nodes send nothing: what leaves layer by layer does so as their equal shares of a pass end.
TEST(LayersShare, nothing_where_passes_send_nothing) {
  const std::string text = hand_over_job("layerwise", "{arrivals: {poisson: 2 /s}, input: 4000, output: 5, requests: 40}", 8192, "",
                                         "{tp: 8, dp: 2}", "{tp: 8}");
  const ServingRun whole = run_by(text, "iteration"), layers = run_by(text, "layer");
  for (std::size_t i = 0; i < whole.requests.size(); ++i) {
    EXPECT_NEAR(moving_s(layers.requests[i]), moving_s(whole.requests[i]), 1e-9);
    EXPECT_NEAR(layers.requests[i].last_s, whole.requests[i].last_s, 1e-9 * whole.requests[i].last_s);
  }
}

// A cache that comes while another answer is decoded on the same ports: both take longer.
TEST(LayersShare, the_ports_of_experts_with_caches) {
  const std::string text = wide_job("{arrivals: {constant: 2 /s}, input: 8000, output: 200, requests: 3}", "{tp: 1, dp: 32, ep: 32}",
                                    "{tp: 1, dp: 32, ep: 32}", "{dispatcher: hierarchical}");
  const ServingRun whole = run_by(text, "iteration"), layers = run_by(text, "layer");
  EXPECT_GT(moving_s(layers.requests[1]), 1.001 * moving_s(whole.requests[1]));
  EXPECT_GT(layers.requests[0].last_s, whole.requests[0].last_s);
  EXPECT_LT(layers.requests[0].last_s, whole.requests[0].last_s + 2 * moving_s(layers.requests[1]));
}

// Ports that are down for half a second hold up the passes that send over them, by as much but for the layer that computes when it begins;
// an instance that fails in a layer forgets it.
TEST(LayersShare, what_fails) {
  const std::string text = wide_job("{arrivals: {closed: 1}, input: 1000, output: 100, requests: 1}", "{tp: 1, dp: 32, ep: 32}",
                                    "{tp: 1, dp: 32, ep: 32}", "{dispatcher: hierarchical}");
  const ServingRun alone = run_by(text, "layer");
  const double middle_s = (alone.requests[0].first_s + alone.requests[0].last_s) / 2, pass_s = alone.requests[0].tpot_s();
  const ServingRun down = run_by(text, "layer", fmt::format("[rail 0 down from {:.6f} s for 0.5 s]", middle_s));
  EXPECT_NEAR(down.requests[0].last_s, alone.requests[0].last_s + 0.5, pass_s / 61 + 1e-6);
  EXPECT_LE(down.requests[0].last_s, alone.requests[0].last_s + 0.5 + 1e-6);
  const std::string failing = fmt::format("[instance decode.0 at {:.6f} s for 1 s, instance prefill.0 at 0.02 s for 1 s]", middle_s);
  const ServingRun lost = run_by(text, "layer", failing), whole = run_by(text, "iteration", failing);
  EXPECT_EQ(lost.requests[0].stage, Stage::done);
  EXPECT_GE(lost.requests[0].retries, 1);
  EXPECT_EQ(lost.requests[0].retries, whole.requests[0].retries);
  EXPECT_NEAR(lost.requests[0].last_s, whole.requests[0].last_s, 1e-6);
  for (const std::int64_t left : lost.pages_left) EXPECT_EQ(left, 0);
}

// Of eight ports of a node one is gone for good: the other seven carry what it did, of a layer under way and of all after it.
TEST(LayersShare, the_ports_that_are_left) {
  const std::string text = wide_job("{arrivals: {closed: 1}, input: 1000, output: 100, requests: 1}", "{tp: 1, dp: 32, ep: 32}",
                                    "{tp: 1, dp: 32, ep: 32}", "{dispatcher: hierarchical}");
  const ServingRun alone = run_by(text, "layer");
  const double middle_s = (alone.requests[0].first_s + alone.requests[0].last_s) / 2, pass_s = alone.requests[0].tpot_s();
  for (const std::string& what : {fmt::format("nic 35 at {:.6f} s", middle_s), fmt::format("rail 3 at {:.6f} s", middle_s)}) {
    const ServingRun gone = run_by(text, "layer", "[" + what + "]");
    EXPECT_EQ(gone.requests[0].stage, Stage::done);
    EXPECT_GT(gone.requests[0].last_s, alone.requests[0].last_s) << what;
    EXPECT_LT(gone.requests[0].last_s - middle_s, 8.0 / 7 * (alone.requests[0].last_s - middle_s) + pass_s) << what;
  }
  // While a node has none left its passes wait, and go on over the first that is back.
  std::vector<std::string> all;
  for (int gpu = 32; gpu < 40; ++gpu) all.push_back(fmt::format("nic {} at {:.6f} s{}", gpu, middle_s, gpu == 35 ? " for 1 s" : ""));
  const ServingRun back = run_by(text, "layer", fmt::format("[{}]", fmt::join(all, ", ")));
  EXPECT_GT(back.requests[0].last_s, alone.requests[0].last_s + 1 - pass_s);
  EXPECT_LT(back.requests[0].last_s, alone.requests[0].last_s + 1 + 8 * (alone.requests[0].last_s - middle_s) + pass_s);
}

}  // namespace
}  // namespace rehearse::tests
