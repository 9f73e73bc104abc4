// Does an independent model of the same operations on the same links take as long? It shares no code with the engine and does not know
// SimGrid: max-min fair rates by progressive filling and contention, worked out anew at every event.
#include <gtest/gtest.h>

#include "../engine/jobs.hpp"
#include "reference/fair_share.hpp"
#include "reference/reference_step.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

// Bertsekas and Gallager, Data Networks, section 6.5.2: the flow over all links has 1/3 of the first, the second of its sharers of that
// link as much, and who meets it on a link of 1 gets what it leaves.
TEST(FairRates, FollowTheTextbook) {
  const std::vector<Load> flows{{{0, 1}, {1, 1}}, {{0, 1}}, {{0, 1}}, {{1, 1}}};
  const std::vector<double> rates = fair_rates({&flows[0], &flows[1], &flows[2], &flows[3]}, {1, 1});
  const std::vector<double> expected{1. / 3, 1. / 3, 1. / 3, 2. / 3};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12) << i;
}

// Who crosses a link twice takes twice its rate there.
TEST(FairRates, CountCrossings) {
  const Load twice{{0, 2}};
  const Load once{{0, 1}};
  const std::vector<double> rates = fair_rates({&twice, &once}, {3});
  EXPECT_NEAR(rates[0], 1, 1e-12);
  EXPECT_NEAR(rates[1], 1, 1e-12);
}

class SecondOpinion : public testing::TestWithParam<SmallJob> {};

void expect_agreement(const sim::Job& job) {
  const double simulated_s = sim::simulate_in_child(job).step_s;
  const double reference_s = sim::run_in_child([&] { return std::vector{reference_step(job)}; }).front();
  EXPECT_NEAR(simulated_s, reference_s, 1e-6 * reference_s);
}

// 1e-6 of the step: SimGrid counts payloads in 2^-16 bytes and takes times closer than 1e-9 s for one.
TEST_P(SecondOpinion, StepsAgree) { expect_agreement(GetParam().job()); }

// Coefficients that differ by class of communication, so that a wrong class or the sum of two would show.
TEST_P(SecondOpinion, StepsAgreeWhereComputationAndCommunicationSlowEachOther) {
  sim::Job job = GetParam().job();
  job.system.gpu.contention = {
      {sim::Phase::tp, {1.5, 1.2}}, {sim::Phase::pp, {1.1, 1.7}}, {sim::Phase::dp, {1.3, 1.4}}, {sim::Phase::offload, {1.05, 1.15}}};
  expect_agreement(job);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, SecondOpinion,
    testing::Values(SmallJob{"shared_nics", 16, "{tp: 2, pp: 1, dp: 8}", "{global: 16, micro: 1, sequence: 1024}",
                             "overlap: {dp_gradients: true}\nsimulation: {ranks: all}", 2},
                    SmallJob{"messages_meet_gradients", 16, "{tp: 1, pp: 4, dp: 4}", "{global: 32, micro: 1, sequence: 1024}",
                             "optimizer: {sharding: zero1}\noverlap: {dp_gradients: true, dp_parameters: true}\nsimulation: {ranks: all}",
                             4},
                    SmallJob{"every_round", 16, "{tp: 2, pp: 2, dp: 4, sp: true}", "{global: 16, micro: 1, sequence: 1024}",
                             "overlap: {dp_gradients: true}\nsimulation: {ranks: all, collectives: step}", 4},
                    SmallJob{"copies_and_a_slow_gpu", 8, "{tp: 1, pp: 2, dp: 4}", "{global: 16, micro: 1, sequence: 1024}",
                             "offload: {activations: true}\nsimulation: {ranks: all, faults: [gpu 3 slow 1.7]}"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rehearse::tests
