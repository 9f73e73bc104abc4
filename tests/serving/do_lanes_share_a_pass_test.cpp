// Attention replicas and the groups of a pipeline compute prompts beside one another, each prompt in one of them: no company makes a first
// token come earlier than alone, and what all of them carry together is what the formula says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/random.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula_by_passes.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::tests {
namespace {

sim::ServingJob lanes_job(const std::string& text) { return sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job"); }

std::string drawn_lanes(config::Random& random, bool experts) {
  const auto pick = [&](const std::vector<int>& some) {
    return some[static_cast<std::size_t>(random.uniform() * static_cast<double>(some.size()))];
  };
  const int tp = pick({1, 2}), dp = pick({1, 2}), pp = pick({1, 2, 4 / dp});
  return fmt::format("{{tp: {}, pp: {}, dp: {}{}}}", tp, pp, dp, experts && dp > 1 ? fmt::format(", ep: {}", tp * dp) : "");
}

// 40 deployments at random: a first token within its passes is no earlier than the prompt's passes take alone.
TEST(APromptInCompany, is_computed_no_faster_than_alone) {
  config::Random random(7);
  const std::vector<std::string> models{"llama3-8b", "mixtral-8x7b"}, engines{"vllm", "trtllm", "sglang"};
  for (int draw = 0; draw < 40; ++draw) {
    const std::string& model = models[static_cast<std::size_t>(draw) % 2];
    const std::string plan = drawn_lanes(random, draw % 2 == 1);
    const std::string text = fmt::format(
        "model: {}\ncluster: a100-pcie-8\nsoftware: {}\nserving:\n  pools: {{all: {{role: both, parallel: {}, kv_tokens: 200000}}}}\n"
        "  load: {{arrivals: {{poisson: {:.3f} /s}}, input: {}, output: 40, requests: 300}}\n",
        model, engines[static_cast<std::size_t>(draw) % 3], plan, 0.5 + 8 * random.uniform(),
        200 + static_cast<int>(3000 * random.uniform()));
    const sim::ServingJob job = lanes_job(text);
    const sim::Deployment deployment = deploy(job);
    const sim::ServingSetup setup = setup_of(job, deployment);
    const sim::LoadMoments load = sim::moments_of(job.load, job.seed);
    const double alone_s = sim::PoolFormula(deployment.pools.front(), load).prompt_s(0).seconds;
    for (const sim::RequestState& request : simulate_serving(setup).requests)
      ASSERT_GE(request.first_s - request.arrival_s, alone_s * (1 - 1e-9)) << text;
  }
}

// Half as much again as is carried, of prompts alone: what leaves is the capacity by formula, within 5 % (the beginning and the end of a
// load are not full), 10 % of prompts longer than a lane's pass, whose ends share lanes with the beginnings of others.
TEST(APoolOfLanes, carries_what_the_formula_says) {
  for (const std::string plan : {"{pp: 2}", "{pp: 4}", "{pp: 8}", "{dp: 2}", "{dp: 4}", "{dp: 8}", "{tp: 2, pp: 2, dp: 2}"}) {
    for (const int input : {700, 4000, 12'000}) {
      const auto text = [&](double rate) {
        return fmt::format(
            "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  isolate: prefill\n  pools: {{p: {{role: prefill, "
            "parallel: {}}}}}\n  load: {{arrivals: {{poisson: {:.4f} /s}}, input: {}, output: 1, requests: 3000}}\n",
            plan, rate, input);
      };
      const sim::ServingJob any = lanes_job(text(1));
      const sim::Deployment deployment = deploy(any);
      const sim::LoadMoments load = sim::moments_of(any.load, any.seed);
      const double carried = prompts_by_passes(sim::PoolFormula(deployment.pools.front(), load), load, 1e9, 1).requests_per_s;
      const sim::ServingJob job = lanes_job(text(1.5 * carried));
      const sim::Deployment loaded = deploy(job);
      const sim::ServingSetup setup = setup_of(job, loaded);
      EXPECT_NEAR(result_of(job, setup, simulate_serving(setup)).requests_per_s / carried, 1, input > 8192 ? 0.1 : 0.05)
          << plan << ' ' << input;
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
