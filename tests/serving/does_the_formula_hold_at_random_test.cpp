// The formula against the simulation on deployments drawn at random, of the kinds for which it promises the mean first token within 5 % and
// tokens within 2 %: equal requests at random, prompts from 512 and answers from 32 tokens on, dense models on GPUs of one kind, caches of
// many requests, no speculation, instances of both behind routers that make no bunches. scripts/serving-formula draws the others, too.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "both_ways.hpp"
#include "drawn_jobs.hpp"

namespace rehearse::tests {
namespace {

class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_(seed) {}

  // Without arrivals.
  std::string next() {
    const bool apart = random_.uniform() < 0.5;
    const std::string engine = one_of({"vllm", "vllm-2024", "vllm-2025", "sglang", "trtllm"});
    const std::string pools = apart ? "{p: " + pool("prefill") + ", d: " + pool("decode") + "}" : "{all: " + pool("both") + "}";
    const std::string prompts = one_of({"round-robin", "random", apart ? "least-requests" : "round-robin", "shortest-wait"}),
                      decodes = one_of({"round-robin", "random", "least-requests", "least-kv"});
    return "model: " + one_of({"llama2-7b", "llama3-8b", "qwen3-14b", "llama2-13b", "nemotron-h-8b"}) + "\ncluster: " +
           one_of({"dgx-h100-ndr400", "dgx-a100-80g-hdr200", "h20-roce-4x400", "dgx-b200-ndr400", "h800-roce-8x200", "nebius-h200"}) +
           "\nsoftware: " + engine + "\nserving:\n  pools: " + pools + "\n  router: {prefill: " + prompts + ", decode: " + decodes +
           "}\n  load: {input: " + std::to_string(between(512, 4096)) + ", output: " + std::to_string(between(32, 256)) +
           ", requests: 20000";
  }
  double load() { return 0.1 + 0.55 * random_.uniform(); }

 private:
  std::string one_of(const std::vector<std::string>& some) { return tests::one_of(random_, some); }
  int between(double low, double high) { return static_cast<int>(low * std::pow(high / low, random_.uniform())); }
  std::string pool(const std::string& role) {
    return "{role: " + role + ", instances: " + one_of({"1", "2", "3", "4"}) + ", parallel: {tp: " + one_of({"1", "2", "4"}) + "}}";
  }
  config::Random random_;
};

class FormulaAtRandom : public testing::TestWithParam<int> {};

// The job of that number. REHEARSE_SEED draws others: with 1 to 4, 159 of 160 keep to it; the last is 10 % off, since caches on their way
// share links.
TEST_P(FormulaAtRandom, keeps_to_the_simulation) {
  const auto [text, load] = drawn_job<Drawn>(GetParam(), 14);
  const auto [formula, simulated] = both_ways(at(text, load * carried_per_s(text)));
  EXPECT_NEAR(formula.ttft.mean_s / simulated.ttft.mean_s, 1, 0.05) << text;
  EXPECT_NEAR(formula.tpot.mean_s / simulated.tpot.mean_s, 1, 0.02) << text;
}

INSTANTIATE_TEST_SUITE_P(Jobs, FormulaAtRandom, testing::Range(0, 40));

}  // namespace
}  // namespace rehearse::tests
