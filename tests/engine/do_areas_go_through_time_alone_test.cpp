// Ranks that only exchanges between replicas connect are ahead of one another between these, and every operation runs when it would anyway.
#include <gtest/gtest.h>

#include <set>

#include "random_jobs.hpp"
#include "sim/engine/areas.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/graph_runner.hpp"
#include "sim/engine/prepared_step.hpp"

namespace rehearse::sim {
namespace {

// Three seconds of work in each of two areas, a second at a time; what is told is 10 x the area + the seconds done.
std::vector<Token> told(const Machine::GoesOn& goes_on) {
  Machine machine;
  for (int i = 0; i < 2; ++i) static_cast<void>(machine.add_host(std::vector{1.0}));
  machine.seal();
  machine.divide(std::vector<AreaIndex>{1, 2});
  for (const HostIndex host : {0U, 1U}) machine.compute(host, 1, 10 * (host + 1) + 1);
  std::vector<Token> told;
  machine.run(
      [&](Token token) {
        EXPECT_EQ(machine.now(), static_cast<double>(token % 10));
        told.push_back(token);
        if (token % 10 < 3) machine.compute(static_cast<HostIndex>(token / 10 - 1), 1, token + 1);
      },
      goes_on);
  return told;
}

TEST(DoAreasGoThroughTimeAlone, as_far_as_they_may) {
  EXPECT_EQ(told({}), (std::vector<Token>{11, 21, 12, 22, 13, 23}));
  // The area that came last at an instant is asked.
  EXPECT_EQ(told([](AreaIndex area, double) { return area == 2; }), (std::vector<Token>{11, 21, 22, 23, 12, 13}));
  EXPECT_EQ(told([](AreaIndex area, double until_s) { return area == 2 && until_s < 2.5; }), (std::vector<Token>{11, 21, 22, 12, 13, 23}));
}

// A step with what it runs on, in areas or as one.
struct Ran {
  std::size_t areas = 1;
  Execution times;
};
Ran ran(const Job& job, bool divided) {
  const PreparedStep step(job, compiled_for_simulation(job));
  Machine machine;
  std::vector<HostIndex> hosts;
  for (std::size_t i = 0; i < step.graph.ranks.size(); ++i) hosts.push_back(machine.add_host(contention_speeds(job.system.gpu)));
  CommPlanner planner(job, step.model, step.graph, step.fold.ranks, step.prices, machine, hosts,
                      job.system.simulation.all_ranks ? nullptr : &step.fold);
  const CommPlans plans = planner.plans();
  machine.seal();
  const Areas areas = areas_of(step.graph, plans, planner.port_links());
  const bool several = divided && !areas.of_rank.empty();
  if (several) machine.divide(areas.of_rank);
  const std::vector<RankSpell> none;
  GraphRunner runner({job.system.gpu, planner.port_links(), hosts, none, planner.flapping(), several ? &areas : nullptr}, machine);
  const std::size_t graph = runner.add({step.graph, step.prices, plans});
  Ran out;
  if (several) out.areas = std::set(areas.of_rank.begin(), areas.of_rank.end()).size();
  runner.at(0, [&] { runner.launch(graph, out.times, {}); });
  runner.run();
  return out;
}

std::size_t areas(const std::string& parallel, int nics = 8, const std::string& simulation = "ranks: all") {
  return ran(tests::small_job(32, parallel, "{global: 32, micro: 1, sequence: 512}", "simulation: {" + simulation + "}\n", nics), true)
      .areas;
}

TEST(DoAreasGoThroughTimeAlone, an_area_is_what_goes_on_without_other_replicas) {
  EXPECT_EQ(areas("{tp: 2, pp: 4, dp: 4}"), 4U);
  EXPECT_EQ(areas("{tp: 8, dp: 4}"), 4U);
  EXPECT_EQ(areas("{dp: 32}"), 32U);
  EXPECT_EQ(areas("{tp: 2, pp: 4, dp: 4}", 8, "ranks: folded"), 1U);  // one replica
  // Messages of both replicas of a node over one NIC; without messages nothing but the exchange loads it.
  EXPECT_EQ(areas("{tp: 4, pp: 4, dp: 2, order: tp-cp-ep-dp-pp}", 1), 1U);
  EXPECT_EQ(areas("{tp: 4, dp: 8}", 1), 8U);
}

TEST(DoAreasGoThroughTimeAlone, every_operation_runs_when_it_would_anyway) {
  tests::RandomJobs jobs(11);
  int several = 0;
  for (int i = 0; i < 120; ++i) {
    const std::string text = jobs.next();
    const std::string all = text.ends_with("ranks: all") ? "" : ", ranks: all";
    Job job = tests::job_of(text + all + fmt::format(", seed: {}, faults: [gpus 30 % slow 1.1 to 1.5]}}\n", i));
    const Ran apart = ran(job, true), together = ran(job, false);
    several += apart.areas > 1 ? 1 : 0;
    ASSERT_EQ(apart.times.end_s.size(), together.times.end_s.size());
    for (std::size_t op = 0; op < apart.times.end_s.size(); ++op) {
      ASSERT_NEAR(apart.times.arrive_s[op], together.times.arrive_s[op], 1e-12 * together.times.step_s) << text;
      ASSERT_NEAR(apart.times.start_s[op], together.times.start_s[op], 1e-12 * together.times.step_s) << text;
      ASSERT_NEAR(apart.times.end_s[op], together.times.end_s[op], 1e-12 * together.times.step_s) << text;
    }
  }
  EXPECT_GT(several, 40);
}

}  // namespace
}  // namespace rehearse::sim
