// Ranks that only exchanges between replicas connect are ahead of one another between these, and every operation runs when it would anyway.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "random_jobs.hpp"
#include "sim/engine/areas.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/graph_runner.hpp"
#include "sim/engine/prepared_step.hpp"

namespace rehearse::sim {
namespace {

// Three seconds of work in each of two areas, a second at a time; what is told is 10 x the area + the seconds done.
struct UpTo : Ahead {
  std::function<bool(AreaIndex, double)> may;
  explicit UpTo(std::function<bool(AreaIndex, double)> goes_on) : may(std::move(goes_on)) {}
  bool goes_on(AreaIndex area, double until_s) override { return may(area, until_s); }
  std::size_t part() override { return 0; }
  void meet() override {}
};
std::vector<Token> told(const std::function<bool(AreaIndex, double)>& goes_on) {
  Machine machine;
  for (int i = 0; i < 2; ++i) static_cast<void>(machine.add_host(std::vector{1.0}));
  machine.seal();
  machine.divide(std::vector<AreaIndex>{1, 2});
  for (const HostIndex host : {0U, 1U}) machine.compute(host, 1, 10 * (host + 1) + 1);
  std::vector<Token> told;
  UpTo ahead(goes_on);
  machine.run(
      [&](Token token) {
        EXPECT_EQ(machine.now(), static_cast<double>(token % 10));
        told.push_back(token);
        if (token % 10 < 3) machine.compute(static_cast<HostIndex>(token / 10 - 1), 1, token + 1);
      },
      goes_on ? &ahead : nullptr);
  return told;
}

TEST(DoAreasGoThroughTimeAlone, as_far_as_they_may) {
  EXPECT_EQ(told({}), (std::vector<Token>{11, 21, 12, 22, 13, 23}));
  // The area that came last at an instant is asked.
  EXPECT_EQ(told([](AreaIndex area, double) { return area == 2; }), (std::vector<Token>{11, 21, 22, 23, 12, 13}));
  EXPECT_EQ(told([](AreaIndex area, double until_s) { return area == 2 && until_s < 2.5; }), (std::vector<Token>{11, 21, 22, 12, 13, 23}));
}

// As far as nothing that is everywhere ends.
struct WhileQuiet : Ahead {
  const Machine& machine;
  double until_s = 0;
  explicit WhileQuiet(const Machine& on) : machine(on) {}
  bool goes_on(AreaIndex /*area*/, double at_s) override { return at_s < until_s; }
  std::size_t part() override {
    until_s = machine.quiet_until_s();
    return 1;
  }
  void meet() override { until_s = 0; }
};

// A flow of all has 100 bytes to go at 10 bytes/s. After a second the first area begins one of 20 bytes over the same link, and each gets
// half until that has ended, at 5 s; the other 70 bytes take until 12 s. The second area works on, a second at a time, and is ahead
// meanwhile.
TEST(DoAreasGoThroughTimeAlone, while_a_flow_of_all_goes_on_that_they_slow) {
  Machine machine;
  for (int i = 0; i < 2; ++i) static_cast<void>(machine.add_host(std::vector{1.0}));
  const std::vector<LinkIndex> link{machine.add_link(10)};
  machine.seal();
  machine.divide(std::vector<AreaIndex>{1, 2});
  constexpr Token works = 1, of_all = 20, of_area = 21, half = 22, whole = 23;
  machine.transfer(0, 1, link, 100, of_all);
  machine.compute(0, 0.5, half);
  machine.compute(1, 1, works);
  std::vector<Token> told;
  std::map<Token, double> at_s;
  WhileQuiet ahead(machine);
  machine.run(
      [&](Token token) {
        told.push_back(token);
        at_s[token] = machine.now();
        if (token == half) machine.compute(0, 0.5, whole);  // and from there on it goes on apart
        if (token == whole) machine.transfer(0, 0, link, 20, of_area, 1, 1);
        if (token < 15) machine.compute(1, 1, token + 1);
      },
      &ahead);
  EXPECT_DOUBLE_EQ(at_s.at(of_area), 5);
  EXPECT_DOUBLE_EQ(at_s.at(of_all), 12);
  for (Token second = 1; second <= 15; ++second) EXPECT_DOUBLE_EQ(at_s.at(second), static_cast<double>(second));
  const auto place = [&](Token token) { return std::ranges::find(told, token) - told.begin(); };
  EXPECT_LT(place(9), place(of_area));  // when alone the flow of all would end at 10 s
  EXPECT_LT(place(of_all), place(13));
}

// A step with what it runs on, in areas or as one.
struct Ran {
  std::size_t areas = 1;
  Execution times;
};
Ran ran(const Job& job, bool divided, unsigned threads = 1) {
  const PreparedStep step(job, compiled_for_simulation(job));
  Machine machine;
  std::vector<HostIndex> hosts;
  for (std::size_t i = 0; i < step.graph.ranks.size(); ++i) hosts.push_back(machine.add_host(contention_speeds(job.system.gpu)));
  CommPlanner planner(job.system, workloads::rank_grid(job.workload), step.model, step.graph, step.fold.ranks, step.prices, machine, hosts,
                      job.system.simulation.all_ranks ? nullptr : &step.fold);
  const CommPlans plans = planner.plans();
  machine.seal();
  const Areas areas = areas_of(step.graph, plans, planner.port_links());
  const bool several = divided && !areas.of_rank.empty();
  if (several) machine.divide(areas.of_rank, threads);
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
  // The replicas of a node share its NIC, whose bandwidth goes by what both do.
  EXPECT_EQ(areas("{tp: 4, pp: 4, dp: 2, order: tp-cp-ep-dp-pp}", 1), 1U);
  EXPECT_EQ(areas("{tp: 4, dp: 8}", 1), 4U);
}

// Two pairs of ranks, each with a message and with an exchange within the pair: one over the first link, the other over the second.
Areas of_pairs(LinkIndex first, LinkIndex second) {
  using namespace workloads;
  StepGraphBuilder builder{std::vector<SimulatedRank>(4)};
  CommPlans plans;
  const auto call = [&](GroupKind kind, CollectiveKind what, std::uint32_t rank, LinkIndex link) {
    const std::uint32_t group = builder.add_group(kind, {static_cast<int>(rank), static_cast<int>(rank) + 1}, {rank, rank + 1});
    CommPlan plan;
    plan.links = {link};
    plans.add(std::move(plan));
    return builder.add_call({.name = "call", .kind = what, .group = kind, .bytes = 1}, 1, group);
  };
  constexpr LinkIndex own = 10;  // of a pair's messages: 10 and 12
  for (const std::uint32_t rank : {0U, 2U}) {
    const std::uint32_t message = call(GroupKind::pp, CollectiveKind::send_recv, rank, own + rank);
    builder.set_receiver(
        builder.add({.kind = OpKind::p2p, .stream = Stream::pp_forward, .phase = Phase::pp, .rank = rank, .item = message}, "message"),
        rank + 1);
    const std::uint32_t exchange = call(GroupKind::dp, CollectiveKind::all_reduce, rank, rank == 0 ? first : second);
    for (const std::uint32_t member : {rank, rank + 1})
      builder.add({.kind = OpKind::collective, .stream = Stream::dp, .phase = Phase::dp, .rank = member, .item = exchange}, "exchange");
  }
  return areas_of(std::move(builder).freeze(), plans, {});
}

TEST(DoAreasGoThroughTimeAlone, exchanges_within_areas_connect_those_whose_links_they_share) {
  EXPECT_EQ(of_pairs(0, 1).of_rank, (std::vector<AreaIndex>{1, 1, 2, 2}));
  EXPECT_TRUE(of_pairs(0, 1).joints.empty());
  EXPECT_TRUE(of_pairs(0, 0).of_rank.empty());   // all are one
  EXPECT_TRUE(of_pairs(12, 1).of_rank.empty());  // over which the other pair sends
}

// Runs the job both ways; how many areas it has. Rounding: flows of one link are added up in the order in which they came, and where they
// meet again and again a difference doubles (docs/soak.md); 1.1e-12 of the step in one of 1,200 jobs.
std::size_t equal_areas(const std::string& text) {
  const Job job = tests::job_of(text);
  const Ran apart = ran(job, true), together = ran(job, false);
  EXPECT_EQ(apart.times.end_s.size(), together.times.end_s.size());
  const double rounding_s = 1e-10 * together.times.step_s;
  for (std::size_t op = 0; op < apart.times.end_s.size(); ++op) {
    for (const auto times : {&Execution::arrive_s, &Execution::end_s}) {
      const double one = (apart.times.*times)[op], other = (together.times.*times)[op];
      if (std::abs(one - other) <= rounding_s) continue;
      ADD_FAILURE() << "operation " << op << ": " << one << " s instead of " << other << "\n" << text;
      return apart.areas;
    }
  }
  return apart.areas;
}

TEST(DoAreasGoThroughTimeAlone, on_any_number_of_threads_to_the_last_bit) {
  tests::RandomJobs jobs(29, tests::RandomJobs::Network::any);
  int several = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string text = jobs.next(), all = text.ends_with("ranks: all") ? "" : ", ranks: all";
    const Job job = tests::job_of(text + all + fmt::format(", seed: {}, faults: [gpus 30 % slow 1.1 to 1.5]}}\n", i));
    const Ran one = ran(job, true);
    if (one.areas == 1) continue;
    ++several;
    for (const unsigned threads : {2U, 5U}) {
      const Ran more = ran(job, true, threads);
      for (const auto times : {&Execution::arrive_s, &Execution::end_s, &Execution::begin_s}) {
        ASSERT_EQ(more.times.*times, one.times.*times) << threads << " threads\n" << text;
      }
    }
  }
  EXPECT_GT(several, 20);
}

TEST(DoAreasGoThroughTimeAlone, every_operation_runs_when_it_would_anyway) {
  tests::RandomJobs jobs(11);
  int several = 0;
  for (int i = 0; i < 120; ++i) {
    const std::string text = jobs.next();
    const std::string all = text.ends_with("ranks: all") ? "" : ", ranks: all";
    several += equal_areas(text + all + fmt::format(", seed: {}, faults: [gpus 30 % slow 1.1 to 1.5]}}\n", i)) > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 40);
}

// Where more is shared: leaves of several nodes, rails, cables, shard groups. So many jobs can be said: REHEARSE_AREAS_JOBS,
// REHEARSE_AREAS_SEED.
TEST(DoAreasGoThroughTimeAlone, and_so_on_any_network) {
  const char *jobs_asked = std::getenv("REHEARSE_AREAS_JOBS"), *seed = std::getenv("REHEARSE_AREAS_SEED");
  const int count = jobs_asked != nullptr ? std::stoi(jobs_asked) : 60;
  tests::RandomJobs jobs(seed != nullptr ? static_cast<unsigned>(std::stoul(seed)) : 3, tests::RandomJobs::Network::any);
  const std::vector<std::string> faults = {
      "", "gpus 30 % slow 1.1 to 1.5", "gpu 1 slow 1.5", "nic 1 slow 3", "rail 0 slow 2", "node 0 slow 1.3"};
  int several = 0;
  for (int i = 0; i < count; ++i) {
    const std::string text = jobs.next(), all = text.ends_with("ranks: all") ? "" : ", ranks: all";
    several += equal_areas(text + all + fmt::format(", seed: {}, faults: [{}]}}\n", i, faults[i % faults.size()])) > 1 ? 1 : 0;
  }
  RecordProperty("jobs_in_areas", several);
  EXPECT_GT(several, count / 4);
}

// Three nodes to a leaf, two to a replica: the messages of the second replica cross the trunk over which the first and the fourth, of other
// shard groups, reduce what both hold (0.9 % of an operation's time when it goes ahead of them).
TEST(DoAreasGoThroughTimeAlone, not_ahead_of_an_exchange_of_others_over_their_own_links) {
  const std::string text = fmt::format(R"(
model: {{layers: 4, hidden: 1024, heads: 16, kv_heads: 16, ffn: 4096, activation: gelu, vocab: 0, positions: rope}}
cluster:{}
  gpus_per_node: 1
  intra_node: {{kind: none}}
  nics: {{per_node: 1, bandwidth: 25 Gbps, efficiency: 0.9, latency: 6 us}}
  network: {{kind: leaf_spine, nodes_per_leaf: 3, oversubscription: 2}}
  host: {{bandwidth: 20 GB/s, efficiency: 1, latency: 10 us}}
  host_memory: {{size: 2 TiB, bandwidth: 200 GB/s}}
gpus: 12
parallel: {{pp: 2, dp: 6, vpp: 2, order: tp-cp-ep-pp-dp}}
schedule: interleaved-1f1b
batch: {{global: 48, micro: 1, sequence: 8192}}
precision: bf16
optimizer: {{sharding: zero3, shard_group: 3}}
overlap: {{dp_gradients: false, dp_parameters: true}}
simulation: {{ranks: all}}
)",
                                       tests::small_gpu("{tp: {alpha: 1, beta: 1}}"));
  EXPECT_GT(equal_areas(text), 1U);
}

}  // namespace
}  // namespace rehearse::sim
