// Prompts of different lengths on instances of both, by formula and simulated, drawn at random: each instance with arrivals of its own,
// engines that cut prompts, answers of different lengths, loads up to 0.9. Before the chain of passes knew unlike prompts nine tenths of
// the first tokens took up to 2.8 times as long as said, and the times per token up to 2.5 times.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "both_ways.hpp"
#include "drawn_jobs.hpp"

namespace rehearse::tests {
namespace {

class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_(seed) {}

  // Without arrivals.
  std::string next() {
    const std::string instances = one_of({"1", "1", "2", "3"});
    return "model: " + one_of({"llama3-8b", "qwen3-14b"}) + "\ncluster: " + one_of({"dgx-h100-ndr400", "h20-roce-4x400", "nebius-h200"}) +
           "\nsoftware: " + one_of({"vllm", "sglang"}) + "\nserving:\n  pools: {all: {role: both, instances: " + instances +
           ", parallel: {tp: " + one_of({"1", "2", "4"}) +
           "}}}\n  router: {prefill: random}\n  slo: {ttft: 1 s, percentile: " + one_of({"0.5", "0.9"}) +
           "}\n  load: {input: " + lengths(512, 3000) + ", output: " + lengths(64, 300) + ", requests: 20000";
  }
  double load() { return 0.3 + 0.6 * random_.uniform(); }

 private:
  std::string one_of(const std::vector<std::string>& some) { return tests::one_of(random_, some); }
  // Of a median between them, up to several times as long.
  std::string lengths(double low, double high) {
    const int median = static_cast<int>(low * std::pow(high / low, random_.uniform()));
    const double spread = 1.5 + 1.5 * random_.uniform();
    if (random_.uniform() < 0.5) return fmt::format("{{uniform: [{}, {}]}}", median / 4, 7 * median / 4);
    return fmt::format("{{lognormal: {{median: {}, p90: {}}}, max: {}}}", median, static_cast<int>(spread * median), 8 * median);
  }
  config::Random random_;
};

class UnlikePrompts : public testing::TestWithParam<int> {};

// The job of that number. REHEARSE_SEED draws others: with 6 and 7, 23 of 24 keep to it; of the last the tokens are 7.6 % too long.
TEST_P(UnlikePrompts, keep_to_what_the_formula_says) {
  const auto [text, load] = drawn_job<Drawn>(GetParam(), 5);
  const BothWays found = both_ways(at(text, load * carried_per_s(text)));
  const auto near = [&, &text = text, &load = load](const char* what, double formula_s, double simulated_s, double within) {
    EXPECT_NEAR(formula_s / simulated_s, 1, within) << what << " at " << load << ": " << formula_s << " and " << simulated_s << " s\n"
                                                    << text;
  };
  near("first token", found.formula.ttft.mean_s, found.simulated.ttft.mean_s, 0.1);
  near("promised first token", found.formula.promised_ttft_s, found.simulated.promised_ttft_s, 0.15);
  near("token", found.formula.tpot.mean_s, found.simulated.tpot.mean_s, 0.07);
  near("promised token", found.formula.promised_tpot_s, found.simulated.promised_tpot_s, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Jobs, UnlikePrompts, testing::Range(0, 12));

}  // namespace
}  // namespace rehearse::tests
