// Many things wrong in one step: what comes and goes inside it, some of the GPUs each slow by its own factor, several failures.
#include <gtest/gtest.h>

#include "sim/engine/child_process.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/engine/jobs.hpp"

namespace rehearse::sim {
namespace {

constexpr const char* some_batch = "{global: 16, micro: 1, sequence: 512}";

Job job(const std::string& parallel, const std::string& simulation, int gpus = 16) {
  return tests::small_job(gpus, parallel, some_batch, "simulation: {" + simulation + "}\n");
}

double step_s(const std::string& parallel, const std::string& simulation, int gpus = 16) {
  return simulate_in_child(job(parallel, simulation, gpus)).step_s;
}

// Replicas meet once, after everything else: a spell of d seconds at 1/f of the speed before that costs d (1 - 1/f).
TEST(WhatDoManyFaultsCost, a_gpu_that_is_slow_for_a_while) {
  const double healthy = step_s("{dp: 16}", "granularity: layer");
  const double d = healthy / 20;
  const auto spell = [&](const std::string& more) {
    return step_s("{dp: 16}", fmt::format("faults: [gpu 3 slow 2 from {} s for {} s{}]", healthy / 10, d, more));
  };
  EXPECT_NEAR(spell(""), healthy + d / 2, 1e-9);
  // Once more within the first half of the step, and then in every tenth of it: five times before it has ended, at most.
  EXPECT_NEAR(spell(fmt::format(" every {} s", healthy / 2)), healthy + d, 1e-9);
  EXPECT_GT(spell(fmt::format(" every {} s", healthy / 10)), healthy + 2.5 * d);
}

// From before its start to after its end: the same as all through the step. Rails as their ports, folded as with all ranks.
TEST(WhatDoManyFaultsCost, what_lasts_as_long_as_the_step) {
  for (const char* how : {"collectives: ring", "collectives: closed", "ranks: all", "ranks: all, collectives: step"}) {
    for (const char* what : {"gpu 3 slow 1.5", "nic 3 slow 2", "rail 3 slow 2", "node 1 slow 1.2"}) {
      const double always = step_s("{tp: 8, dp: 2}", fmt::format("{}, faults: [{}]", how, what));
      EXPECT_NEAR(step_s("{tp: 8, dp: 2}", fmt::format("{}, faults: [{} from 0 s for 1 min]", how, what)), always, 1e-9) << how << what;
    }
  }
}

// The replicas' reduction is the last thing but the update. A rail that is down for d while it runs costs d, and no more when it comes up.
TEST(WhatDoManyFaultsCost, a_rail_that_is_down_and_up_again) {
  const Job without = job("{tp: 8, dp: 2}", "granularity: layer");
  const StepResult healthy = simulate_in_child(without);
  double transfer_s = 0;
  for (const CollectiveResult& call : healthy.collectives) {
    if (call.group == "dp") transfer_s += static_cast<double>(call.calls) * call.seconds;
  }
  const double update_s = healthy.ranks[0].phases[Phase::optimizer] - without.system.software.step_s;  // the host's work comes first
  const double inside_s = healthy.step_s - update_s - transfer_s / 4;  // a flow is under way, also in the last of the rounds
  for (const char* how : {"collectives: ring", "collectives: closed", "ranks: all", "ranks: all, collectives: step"}) {
    const double down = step_s("{tp: 8, dp: 2}", fmt::format("{}, faults: [rail 3 down from {} s for 5 ms]", how, inside_s));
    EXPECT_NEAR(down, healthy.step_s + 5e-3, 1e-8) << how;  // a billionth of the bandwidth is left
  }
  // Down for half of the time: what remains takes twice as long, to one period.
  const double flapping = step_s("{tp: 8, dp: 2}", fmt::format("faults: [rail 3 down from {} s for 10 us every 20 us]", inside_s));
  EXPECT_NEAR(flapping, healthy.step_s + transfer_s / 4, 20e-6);
}

// One in five, each by its own factor; the seed decides which, and the same items one by one give the same step.
TEST(WhatDoManyFaultsCost, some_gpus_each_by_its_own_factor) {
  for (const char* parallel : {"{tp: 4, pp: 4, dp: 2}", "{tp: 2, pp: 4, dp: 4}", "{tp: 2, dp: 16}"}) {
    for (const int seed : {1, 2, 3}) {
      const std::string drawn = fmt::format("seed: {}, faults: [gpus 20 % slow 1.1 to 1.5]", seed);
      const Job some = job(parallel, drawn, 32);
      ASSERT_EQ(some.system.simulation.faults.items.size(), 6U);  // 6.4 of 32
      EXPECT_EQ(some.system.simulation.faults.slow.gpus.size(), 6U);
      const double folded = simulate_in_child(some).step_s;
      EXPECT_NEAR(folded, step_s(parallel, "ranks: all, " + drawn, 32), 1e-9) << parallel;
      EXPECT_EQ(folded, step_s(parallel, fmt::format("seed: 9, faults: [{}]", fmt::join(some.system.simulation.faults.items, ", ")), 32));
      EXPECT_NE(some.system.simulation.faults.items,
                job(parallel, fmt::format("seed: {}, faults: [gpus 20 % slow 1.1 to 1.5]", seed + 10), 32).system.simulation.faults.items);
    }
  }
}

// Nothing is shared here: one GPU slower still is never faster, wherever it is and whatever else is slow.
TEST(WhatDoManyFaultsCost, no_less_the_slower_any_of_them_is) {
  for (int seed = 1; seed <= 12; ++seed) {
    double last = 0;
    for (const double more : {1.0, 1.05, 1.3, 2.0}) {
      const double now =
          step_s("{tp: 2, pp: 4, dp: 4}",
                 fmt::format("seed: {}, collectives: closed, faults: [gpus 4 slow 1.1 to 1.5, gpu {} slow {}, nics 2 slow {}]", seed,
                             5 * seed % 32, more, more),
                 32);
      EXPECT_GE(now, last * (1 - 1e-12)) << seed << " " << more;
      last = now;
    }
  }
}

struct After {
  double detected_s = 0;
  std::vector<double> last_s;  // [rank]; negative: dead
};

After after(const std::string& simulation) {
  const std::vector<double> numbers = run_in_child([&] {
    const Simulation failed = simulate(job("{tp: 4, pp: 2, dp: 4}", "timeout: 1 s, " + simulation, 32));
    const Aftermath& all = failed.aftermath.value();
    std::vector<double> answer{all.detected_s};
    for (const RankAftermath& rank : all.ranks) answer.push_back(rank.end == RankAftermath::End::dead ? -1 : rank.last_s);
    return answer;
  });
  return {numbers.front(), {numbers.begin() + 1, numbers.end()}};
}

// Each dead node stops at its own instant; the first hang of a living rank is what is detected, and it is no later than with one alone.
TEST(WhatDoManyFaultsCost, two_dead_nodes) {
  const After both = after("ranks: all, faults: [node 1 at 2 ms, node 3 at 4 ms]");
  const After one = after("ranks: all, faults: [node 1 at 2 ms]");
  EXPECT_EQ(std::ranges::count(both.last_s, -1), 16);
  EXPECT_EQ(std::ranges::count(one.last_s, -1), 8);
  EXPECT_GE(both.detected_s, one.detected_s);  // those of node 3 might have noticed
  for (int rank = 0; rank < 8; ++rank) EXPECT_LE(both.last_s[static_cast<std::size_t>(rank)], one.last_s[static_cast<std::size_t>(rank)]);
  EXPECT_NEAR(after("faults: [node 1 at 2 ms, node 3 at 4 ms]").detected_s, both.detected_s, 1e-9);
  // Two drawn at random are two.
  EXPECT_EQ(std::ranges::count(after("ranks: all, faults: [nodes 2 at 2 ms]").last_s, -1), 16);
  EXPECT_EQ(std::ranges::count(after("ranks: all, faults: [job at 2 ms]").last_s, -1), 32);
}

TEST(WhatDoManyFaultsCost, nothing_once_the_step_is_lost) {
  EXPECT_THROW(static_cast<void>(after("faults: [node 1 at 2 ms, node 3 at 2 s]")), std::runtime_error);
}

// What comes and goes for ever does not keep a step going that hangs.
TEST(WhatDoManyFaultsCost, a_flapping_port_in_a_step_that_hangs) {
  EXPECT_GT(after("faults: [gpu 5 at 2 ms, nic 9 slow 2 from 0 s for 1 ms every 3 ms]").detected_s, 1);
}

}  // namespace
}  // namespace rehearse::sim
