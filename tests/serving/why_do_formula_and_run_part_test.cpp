// Where the formula and the simulation of a deployment part, and whether the reason given is what the simulation counted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "config/node.hpp"
#include "deployments.hpp"
#include "sim/serving/deployment.hpp"
#include "sim/serving/formula.hpp"
#include "sim/serving/stage_differences.hpp"

namespace rehearse::tests {
namespace {

struct Parted {
  sim::ServingResult formula, simulated;
  std::vector<sim::StageDifference> differences;
  [[nodiscard]] std::string reason(const std::string& stage) const {
    for (const sim::StageDifference& one : differences) {
      if (one.name == stage) return one.reason;
    }
    return "no such row";
  }
};

Parted parted(const std::string& pools, const std::string& load, const std::string& more = "") {
  const std::string text = fmt::format(
      "model: llama3-8b\ncluster: dgx-h100-ndr400\nsoftware: vllm\nserving:\n  pools: {{{}}}\n{}  load: {}\n", pools, more, load);
  const sim::ServingJob job = sim::read_serving_job(config::Node::load_text(text, "job.yaml"), "job");
  const sim::Deployment deployment = deploy(job);
  const sim::ServingPrediction prediction = predict_serving(job, deployment, 1000);
  EXPECT_EQ(prediction.overloaded, "");
  const sim::ServingSetup setup = setup_of(job, deployment);
  Parted out{.formula = prediction.result, .simulated = result_of(job, setup, simulate_serving(setup)), .differences = {}};
  out.differences = stage_differences(job, deployment, out.formula, out.simulated);
  return out;
}

// Every stage that differs by more than a thousandth of the whole has a reason, no other has; the stages add up to the whole.
void expect_reasons_where_they_part(const Parted& found) {
  double stages_s = 0;
  for (const sim::StageDifference& one : found.differences) {
    if (one.name.find(' ') != std::string::npos) continue;  // what stages add up to
    stages_s += one.simulated_s;
    const bool parts = std::abs(one.simulated_s - one.analytic_s) > 1e-3 * found.simulated.e2e.mean_s;
    EXPECT_EQ(parts, !one.reason.empty()) << one.name;
  }
  EXPECT_NEAR(stages_s, found.simulated.e2e.mean_s, 1e-9 * stages_s);
}

const std::string both = "all: {role: both}", two = "p: {role: prefill}, d: {role: decode}";

TEST(AReason, stands_where_they_part_and_only_there) {
  for (const char* load : {"{arrivals: {poisson: 4 /s}, input: 1000, output: 100, requests: 2000}",
                           "{arrivals: {closed: 8}, input: 1000, output: 100, requests: 200}",
                           "{arrivals: at-once, input: 1000, output: {uniform: [10, 200]}, requests: 100}"}) {
    expect_reasons_where_they_part(parted(both, load));
    expect_reasons_where_they_part(parted(two, load));
  }
}

TEST(AReason, for_a_queue_counts_who_had_to_go) {
  const Parted found = parted("all: {role: both, kv_tokens: 40000}", "{arrivals: {closed: 60}, input: 1000, output: 500, requests: 300}");
  expect_reasons_where_they_part(found);
  ASSERT_GT(found.simulated.pools[0].preemptions, 0);
  const std::string words = fmt::format("pages ran out {:.0f} times", found.simulated.pools[0].preemptions);
  EXPECT_TRUE(found.reason("queued").starts_with(words) || found.reason("decoding").starts_with(words))
      << found.reason("queued") << " / " << found.reason("decoding");
}

// Static batches are no chain of passes by formula: what is said of that holds where it was asked.
TEST(AReason, is_of_the_formula_that_was_asked) {
  const Parted found = parted("all: {role: both, parallel: {pp: 2}, batching: static}",
                              "{arrivals: {poisson: 8 /s}, input: {uniform: [200, 1800]}, output: 100, requests: 3000}");
  expect_reasons_where_they_part(found);
  EXPECT_EQ(found.reason("queued"), "static batches differ in length, and routers look for instances without one");
}

// The decoding side has room for two: caches wait, and the pages that they keep are what prompts wait for.
TEST(AReason, for_waiting_is_room) {
  const Parted found = parted("p: {role: prefill, kv_tokens: 4096}, d: {role: decode, kv_tokens: 2128}",
                              "{arrivals: at-once, input: 1000, output: 50, requests: 100}");
  expect_reasons_where_they_part(found);
  EXPECT_EQ(found.reason("waiting"), "no room: the decoding side's pages are all taken");
}

// Prompts in passes of eight end together, and their caches leave together over one link to the host.
TEST(AReason, for_a_transfer_is_what_it_shares) {
  const Parted found = parted("p: {role: prefill}, d: {role: decode}", "{arrivals: {closed: 16}, input: 1000, output: 2, requests: 160}",
                              "  transfer: {path: host-staged}\n");
  expect_reasons_where_they_part(found);
  EXPECT_GT(found.simulated.kv_transfer_s, found.formula.kv_transfer_s);
  EXPECT_EQ(found.reason("transferring"), "caches on their way at once share links");
}

// By their caches alone instances get prompts in bunches: all that come go to the one where the last answers ended together.
TEST(AReason, for_prompts_that_share_passes_is_the_router) {
  const Parted found = parted("all: {role: both, instances: 4}", "{arrivals: {poisson: 200 /s}, input: 115, output: 120, requests: 4000}",
                              "  router: {prefill: least-kv}\n");
  expect_reasons_where_they_part(found);
  EXPECT_TRUE(found.reason("prefilling").starts_with("least-kv: who came together ends together")) << found.reason("prefilling");
}

// A cache of three requests: who comes as the fourth waits until one ends.
TEST(AReason, for_a_queue_before_a_small_cache_is_room) {
  const Parted found = parted("all: {role: both, kv_tokens: 4000, overflow: reserve}",
                              "{arrivals: {poisson: 1.2 /s}, input: 1000, output: 200, requests: 4000}");
  expect_reasons_where_they_part(found);
  EXPECT_EQ(found.reason("queued"), "an instance holds 3 of the requests: who finds no room waits until one ends");
}

// No queue of passes knows two moments only: where pass lengths vary beside a varying number of sequences is what is said of it.
TEST(AReason, for_a_queue_of_equal_prompts_is_no_moment) {
  const Parted found = parted("all: {role: both}", "{arrivals: {poisson: 30 /s}, input: 600, output: 150, requests: 4000}");
  expect_reasons_where_they_part(found);
  EXPECT_EQ(found.reason("queued").find("moments"), std::string::npos) << found.reason("queued");
}

}  // namespace
}  // namespace rehearse::tests
