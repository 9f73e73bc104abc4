// Items of simulation.faults: what they stand for, what is drawn at random, what a scenario has in store for a step, what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/faults/step_fault_text.hpp"
#include "sim/faults/step_faults.hpp"
#include "tests/faults/context.hpp"

namespace rehearse::sim {
namespace {

constexpr Places places{.gpus = 128, .gpus_per_node = 8, .rails = 8};

StepFaults read(const std::string& list, std::uint64_t seed = 1, const FaultScenario* scenario = nullptr) {
  return read_step_faults(config::Node::load_text("[" + list + "]", "faults.yaml"), {places, 4, seed, scenario});
}

TEST(WhatDoesAStepFeel, of_a_share_of_the_gpus) {
  const StepFaults one = read("gpus 5 % slow 1.1 to 1.5");
  EXPECT_EQ(one.slow.gpus.size(), 6U);  // 6.4
  for (const auto& [rank, slowdown] : one.slow.gpus) {
    EXPECT_GE(slowdown, 1.1);
    EXPECT_LE(slowdown, 1.5);
  }
  EXPECT_EQ(read("gpus 5 % slow 1.1 to 1.5").items, one.items);
  EXPECT_NE(read("gpus 5 % slow 1.1 to 1.5", 2).items, one.items);
  EXPECT_EQ(read("gpus 0.01 % slow 2").slow.gpus.size(), 1U);
  EXPECT_EQ(read("nodes 3 slow 2").slow.gpus.size(), 24U);
  EXPECT_EQ(read("nics 100 % slow 2").slow.ports.size(), 128U);
  const StepFaults spells = read("nics 4 down from 1 s for 20 ms every 1 s");
  ASSERT_EQ(spells.spells.size(), 4U);
  EXPECT_EQ(spells.spells[0].slowdown, down_slowdown);
  EXPECT_EQ(spells.spells[0].every_s, 1);
  EXPECT_TRUE(spells.flapping.contains(spells.spells[0].ranks[0]));
}

// Uniform between 1.1 and 1.5: mean 1.3, and 0.4 / sqrt(12 n) its error; exponential: mean excess 0.3, error 0.3 / sqrt(n). Four of them.
TEST(WhatDoesAStepFeel, of_slowdowns_as_distributed) {
  double uniform = 0, exponential = 0;
  constexpr int seeds = 50, n = seeds * 128;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const auto& [rank, slowdown] : read("gpus 100 % slow 1.1 to 1.5", seed).slow.gpus) uniform += slowdown / n;
    for (const auto& [rank, slowdown] : read("gpus 100 % slow exponential 1.3", seed).slow.gpus) exponential += slowdown / n;
  }
  EXPECT_NEAR(uniform, 1.3, 4 * 0.4 / std::sqrt(12.0 * n));
  EXPECT_NEAR(exponential, 1.3, 4 * 0.3 / std::sqrt(1.0 * n));
}

// At 100 s one GPU is slow for 50 s more, a rail goes down 10 s later, a node fails after 30 s; what is over, and what comes later, is not
// felt.
TEST(WhatDoesAStepFeel, of_a_scenario) {
  const FaultScenario scenario = tests::scenario(
      "{a: {source: script, faults: [{at: 10 s, component: gpu, node: 2, gpu: 5, kind: slow, slowdown: 1.5, duration: 140 s}, "
      "{at: 20 s, component: hbm, kind: slow, slowdown: 3, duration: 60 s}, {at: 110 s, component: switch, rail: 3, kind: slow, slowdown: "
      "2, "
      "duration: 5 s}, {at: 130 s, component: host, node: 7, level: pod}, {at: 500 s, component: host, node: 1, level: pod}]}}");
  const StepFaults felt = read("scenario at 100 s for 3 min", 1, &scenario);
  EXPECT_EQ(felt.items,
            (std::vector<std::string>{"gpu 21 slow 1.5 from 0 s for 50 s", "rail 3 slow 2 from 10 s for 5 s", "node 7 at 30 s"}));
  EXPECT_EQ(felt.drawn_for_s, 180);
  ASSERT_EQ(felt.failures.size(), 1U);
  EXPECT_TRUE(felt.failures[0].drawn);
  EXPECT_EQ(felt.failures[0].ranks.size(), 8U);
  EXPECT_EQ(read("scenario at 100 s for 20 s", 1, &scenario).items,
            (std::vector<std::string>{"gpu 21 slow 1.5", "rail 3 slow 2 from 10 s for 5 s"}));
}

// A rack takes its nodes, a process one GPU, the job everything; a rail without a number that is lost takes all rails.
TEST(WhatDoesAStepFeel, of_what_a_fault_strikes) {
  Fault fault;
  fault.component = Component::rack;
  fault.node = 4;
  fault.nodes = 2;
  EXPECT_EQ(struck_by(fault, places), (std::vector<std::string>{"node 4", "node 5"}));
  fault.level = FaultLevel::process;
  EXPECT_EQ(struck_by(fault, places), (std::vector<std::string>{"gpu 32", "gpu 40"}));
  fault.level = FaultLevel::job;
  EXPECT_EQ(struck_by(fault, places), (std::vector<std::string>{"job"}));
  fault.kind = FaultKind::slow;
  fault.component = Component::switch_;
  fault.nodes = 1;
  fault.unit = all_units;
  EXPECT_EQ(struck_by(fault, places).size(), 8U);
  fault.nodes = 2;
  fault.unit = 3;
  EXPECT_EQ(struck_by(fault, places), (std::vector<std::string>{"nic 35", "nic 43"}));
  // What is slow can be said and read again.
  SlowParts slow{.gpus = {{5, 1.25}}, .ports = {{9, 2}}, .trunks = 1.5, .lost_spines = 1};
  std::string list;
  for (const std::string& item : items_of(slow)) list += (list.empty() ? "" : ", ") + item;
  EXPECT_EQ(read(list).slow, slow);
}

struct BadStepFault {
  const char* list;
  const char* message;
};

class IsABadItemRefused : public testing::TestWithParam<BadStepFault> {};

TEST_P(IsABadItemRefused, with_its_place) {
  try {
    static_cast<void>(read(GetParam().list));
    FAIL() << "accepted";
  } catch (const config::InputError& error) {
    EXPECT_EQ(fmt::format("{}:{}: {}", error.where().line, error.where().column, error.message()), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Items, IsABadItemRefused,
    testing::Values(
        BadStepFault{"gpu 1 slow 2, gpu 200 slow 2", "1:16: there is no gpu 200: the job has 128 GPUs, counted from 0"},
        BadStepFault{"gpu 1 slow 0.5", "1:2: '0.5' is not how many times as long it takes, from 1 on"},
        BadStepFault{"gpu 1 slow 2 from 1 s", "1:2: 'gpu 1 slow 2 from 1 s' does not say for how long"},
        BadStepFault{"gpu 1 slow 2 for 1 s", "1:2: 'gpu 1 slow 2 for 1 s' does not say from when"},
        BadStepFault{"gpu 1 slow 2 from 1 s for 0 s", "1:2: must be longer than 0 s"},
        BadStepFault{"gpu 1 slow 2 from 1 s for 2 s every 1 s", "1:2: it comes again before it is over"},
        BadStepFault{"gpu 1 slow 2 from 1 for 2 s", "1:2: '1' is not a time: a unit is missing (write 5 us or 5 ms)"},
        BadStepFault{"gpu 1 slow 2 from 2 day for 2 s", "1:2: 'from' in 'gpu 1 slow 2 from 2 day for 2 s': no step is longer than a day"},
        BadStepFault{"gpu 1 down from 1 s for 2 s", "1:2: ports and rails go down, and come up again; a GPU is slow, or fails 'at' a time"},
        BadStepFault{"spine lost from 1 s for 2 s", "1:2: a spine is slow or lost in the whole step"},
        BadStepFault{"job slow 2", "1:2: the job as a whole fails 'at' a time"},
        BadStepFault{"gpus 200 slow 2", "1:2: the job has 128 gpus, not 200"},
        BadStepFault{"gpus 0 % slow 2", "1:2: '0 %' is not a share of the gpus"},
        BadStepFault{"gpus 1 % slow 1.5 to 1.2", "1:2: in 'gpus 1 % slow 1.5 to 1.2' the largest slowdown comes second"},
        BadStepFault{"gpus some slow 2", "1:2: 'some' is not how many gpus"},
        BadStepFault{"scenario at 1 h", "1:2: the job has no `faults` to draw from; simulate takes --faults SCENARIO as well"}));

}  // namespace
}  // namespace rehearse::sim
