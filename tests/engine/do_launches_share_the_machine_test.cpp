// Graphs launched while others are under way: streams in the order of launches, links shared, timers, and failures of one that leave the
// others alone. Work and messages are whole seconds, so that the instants follow by hand.
#include <gtest/gtest.h>

#include "sim/engine/graph_runner.hpp"

namespace rehearse::sim {
namespace {

constexpr double tolerance = 1e-9;  // of the machine's clock

// Graphs of one or two ranks, on as many hosts as are asked for and one link of a byte a second.
class Launches : public ::testing::Test {
 protected:
  void start(std::size_t ranks) {
    const std::vector<double> speeds = contention_speeds(gpu_);
    for (std::size_t i = 0; i < ranks; ++i) hosts_.push_back(machine_.add_host(speeds));
    link_ = machine_.add_link(1);
    machine_.seal();
    prices_.work_s = {1};
    prices_.calls.resize(1);
    CommPlan plan;
    plan.legs.push_back({.bytes = 1, .links = 1});
    plan.links = {link_};
    plans_.add(std::move(plan));
    runner_.emplace(RunnerSetup{gpu_, ports_, hosts_, spells_, ports_}, machine_);
  }

  // A second of work on each of so many ranks, one after the other.
  static workloads::StepGraph line(std::uint32_t ranks) {
    workloads::StepGraphBuilder builder{std::vector<workloads::SimulatedRank>(ranks)};
    const std::uint32_t work = builder.add_work({});
    workloads::OpId before = workloads::no_op;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const workloads::OpId id =
          builder.add({.kind = workloads::OpKind::compute, .stream = workloads::Stream::compute, .rank = rank, .item = work}, "work");
      if (before != workloads::no_op) builder.depend(before, id);
      before = id;
    }
    return std::move(builder).freeze();
  }

  // A byte over the link.
  static workloads::StepGraph copy() {
    workloads::StepGraphBuilder builder{std::vector<workloads::SimulatedRank>(1)};
    const std::uint32_t group = builder.add_group(workloads::GroupKind::to_host, {0}, {0});
    const std::uint32_t call = builder.add_call({.name = "copy", .group = workloads::GroupKind::to_host, .bytes = 1}, 1, group);
    builder.add(
        {.kind = workloads::OpKind::copy, .stream = workloads::Stream::d2h, .phase = workloads::Phase::offload, .rank = 0, .item = call},
        "copy");
    return std::move(builder).freeze();
  }

  std::size_t add(const workloads::StepGraph& graph, std::uint32_t first_rank = 0) {
    return runner_->add({graph, prices_, plans_, first_rank});
  }
  void launch_at(double when_s, std::size_t graph, Execution& times) {
    runner_->at(when_s, [this, graph, &times] { runner_->launch(graph, times, {}); });
  }

  Gpu gpu_;
  Machine machine_;
  std::vector<HostIndex> hosts_;
  LinkIndex link_ = 0;
  Prices prices_;
  CommPlans plans_;
  std::vector<PortLink> ports_;
  std::vector<RankSpell> spells_;
  std::optional<GraphRunner> runner_;
};

// m launches of a line over p ranks at once are a pipeline: the k-th (from 0) is over after p + k seconds.
TEST_F(Launches, OfOneGraphFollowEachOtherInItsStreams) {
  start(3);
  const workloads::StepGraph graph = line(3);
  const std::size_t pass = add(graph);
  std::vector<Execution> passes(5);
  for (Execution& times : passes) launch_at(0, pass, times);
  runner_->run();
  for (std::size_t k = 0; k < passes.size(); ++k) {
    EXPECT_NEAR(passes[k].step_s, 3.0 + static_cast<double>(k), tolerance);
    EXPECT_NEAR(passes[k].arrive_s[1], 1.0 + static_cast<double>(k), tolerance);
  }
  EXPECT_FALSE(runner_->under_way());
}

// A graph of one rank more: the ranks that both use run one launch after the other.
TEST_F(Launches, OfOtherGraphsQueueOnTheRanksTheyShare) {
  start(3);
  const workloads::StepGraph two = line(2), one = line(1);
  const std::size_t first = add(two), second = add(one, 1), third = add(one, 2);
  Execution a, b, c;
  launch_at(0, first, a);
  launch_at(0.5, second, b);
  launch_at(0.5, third, c);
  runner_->run();
  EXPECT_NEAR(a.step_s, 2, tolerance);
  EXPECT_NEAR(b.step_s, 2.5, tolerance);  // from 0.5 s on: waits for the first until 2 s, works until 3 s
  EXPECT_NEAR(c.step_s, 1, tolerance);    // a rank of its own
}

// Half a byte alone, then half the rate each: the first is over after 1.5 s; the second has half of its byte left then, and takes 1.5 s.
TEST_F(Launches, ShareALinkWhileTheyOverlap) {
  start(2);
  const workloads::StepGraph graph = copy();
  const std::size_t here = add(graph), there = add(graph, 1);
  Execution a, b;
  launch_at(0, here, a);
  launch_at(0.5, there, b);
  runner_->run();
  EXPECT_NEAR(a.step_s, 1.5, tolerance);
  EXPECT_NEAR(b.step_s, 1.5, tolerance);
}

TEST_F(Launches, BeginAgainWhenOneIsDone) {
  start(1);
  const workloads::StepGraph graph = line(1);
  const std::size_t work = add(graph);
  std::vector<Execution> all(3);
  std::size_t next = 0;
  const std::function<void()> go_on = [&] {
    if (next < all.size()) runner_->launch(work, all[next++], go_on);
  };
  runner_->at(2, go_on);
  runner_->run();
  for (const Execution& times : all) EXPECT_NEAR(times.step_s, 1, tolerance);
  EXPECT_NEAR(machine_.now(), 5, tolerance);
}

// The first's GPU dies with half of its byte under way: the other has the link to itself from then on.
TEST_F(Launches, OfADeadGpuStandStillAndOthersGoOn) {
  start(2);
  const workloads::StepGraph graph = copy();
  const std::size_t here = add(graph), there = add(graph, 1);
  Execution dead, alive;
  launch_at(0, here, dead);
  launch_at(0, there, alive);
  runner_->at(1, [this] { runner_->fail({.ranks = {0}}); });
  runner_->run();
  EXPECT_EQ(dead.end_s[0], never_s);
  EXPECT_NEAR(alive.end_s[0], 1.5, tolerance);
  EXPECT_TRUE(runner_->under_way());
}

}  // namespace
}  // namespace rehearse::sim
