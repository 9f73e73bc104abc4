// Rounds of a collective over links that nothing else loads are carried out as one, and take what they took.
#include <gtest/gtest.h>

#include "jobs.hpp"
#include "sim/engine/serial_legs.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::sim {
namespace {

// `rounds` times a delay of 2 s and then 10 bytes over the links.
PlanOfGroup rounds_over(std::vector<LinkIndex> links, std::uint32_t group, int rounds, int repeat = 1) {
  PlanOfGroup made;
  CommPlan& plan = made.plan;
  made.group = group;
  const auto used = static_cast<std::uint32_t>(links.size());
  plan.links = std::move(links);
  plan.repeat = repeat;
  for (std::uint32_t leg = 0; leg < 2 * static_cast<std::uint32_t>(rounds); ++leg) {
    const bool last = leg + 1 == 2 * static_cast<std::uint32_t>(rounds);
    plan.legs.push_back(
        {leg % 2 == 0 ? 2.0 : 0.0, leg % 2 == 0 ? 0.0 : 10.0, 0, leg % 2 == 0 ? 0 : used, leg == 0 ? 0U : 1U, leg, last ? 0U : 1U});
    if (!last) plan.releases.push_back(leg + 1);
  }
  return made;
}

TEST(WhichRoundsAreOne, those_over_links_that_one_group_loads) {
  std::vector<PlanOfGroup> plans{rounds_over({0, 1}, 7, 3), rounds_over({0, 1, 1}, 7, 4, 5), rounds_over({2}, 8, 3),
                                 rounds_over({2}, 9, 3)};
  join_serial_legs(plans);
  ASSERT_EQ(plans[0].plan.legs.size(), 1U);
  EXPECT_EQ(plans[0].plan.legs[0].delay_s, 6);
  EXPECT_EQ(plans[0].plan.legs[0].bytes, 30);
  EXPECT_EQ(plans[0].plan.links, (std::vector<LinkIndex>{0, 1}));
  ASSERT_EQ(plans[1].plan.legs.size(), 1U);
  EXPECT_EQ(plans[1].plan.legs[0].delay_s, 40);  // five times four rounds
  EXPECT_EQ(plans[1].plan.legs[0].bytes, 200);
  EXPECT_EQ(plans[1].plan.links, (std::vector<LinkIndex>{0, 1, 1}));
  EXPECT_EQ(plans[1].plan.repeat, 1);
  for (const std::size_t shared : {2, 3}) EXPECT_EQ(plans[shared].plan.legs.size(), 6U);  // two groups over one link
}

TEST(WhichRoundsAreOne, not_those_that_run_beside_one_another) {
  std::vector<PlanOfGroup> plans{rounds_over({0}, 7, 3), rounds_over({1}, 8, 3)};
  plans[0].in_turn = false;       // two streams of its group load the link
  plans[1].plan.releases[2] = 4;  // the fourth leg does not wait for the third
  join_serial_legs(plans);
  EXPECT_EQ(plans[0].plan.legs.size(), 6U);
  EXPECT_EQ(plans[1].plan.legs.size(), 6U);
  std::vector<PlanOfGroup> elsewhere{rounds_over({0, 1}, 7, 2)};
  elsewhere[0].plan.legs[3].links = 1;  // over one link of two
  join_serial_legs(elsewhere);
  EXPECT_EQ(elsewhere[0].plan.legs.size(), 4U);
}

// Tensor-parallel rounds, one way or the other: alone on their ports, beside messages on them, and with a port slowed for the whole step,
// which keeps its bandwidth, or for a while as long as the step, which could change it.
TEST(WhichRoundsAreOne, the_step_is_the_same) {
  for (const std::string parallel : {"{tp: 8, pp: 2, dp: 2, sp: true}", "{tp: 4, pp: 8, dp: 1}", "{tp: 4, cp: 2, pp: 2, dp: 2}"}) {
    const auto step_s = [&](const std::string& how) {
      return simulate_in_child(tests::small_job(32, parallel, "{global: 8, micro: 1, sequence: 1024}",
                                                "simulation: {collectives: step, faults: [nic 3 slow 1.2" + how + "]}\n"))
          .step_s;
    };
    const double joined = step_s(""), apart = step_s(" from 0 s for 1 min");
    EXPECT_NEAR(joined, apart, 1e-9 * apart) << parallel;
  }
}

}  // namespace
}  // namespace rehearse::sim
