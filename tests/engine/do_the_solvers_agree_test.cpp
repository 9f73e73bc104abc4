// The machine's own events and fair shares against SimGrid, on random work; and the algebra of a few shares by hand.
#include <gtest/gtest.h>

#include "config/input_error.hpp"
#include "config/random.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/engine/fair_share.hpp"
#include "sim/engine/machine.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/experts/jobs.hpp"

namespace rehearse::tests {
namespace {

using sim::HostIndex;
using sim::LinkIndex;
using sim::Machine;
using sim::Solver;
using sim::Token;

// Chains of computations, flows and delays, one operation after another, that change the speed of their host and the bandwidth of their own
// link now and then. What a chain does depends on its own random numbers alone.
class RandomWork {
 public:
  RandomWork(Solver solver, std::uint64_t seed) : machine_(solver) {
    config::Random random(seed);
    const auto chains = 2 + random.next() % 12;
    const auto links = chains + random.next() % 8;
    const std::array speeds{1.0, 0.7, 0.45};
    for (std::size_t i = 0; i < links; ++i) bandwidth_.push_back(1e9 * (1 + 9 * random.uniform()));
    for (const double bandwidth : bandwidth_) static_cast<void>(machine_.add_link(bandwidth));
    for (std::size_t i = 0; i < chains; ++i) {
      static_cast<void>(machine_.add_host(speeds));
      chains_.push_back({config::Random(random.next()), 0});
    }
    machine_.seal();
  }

  // When each operation ended, chain after chain.
  std::vector<double> run() {
    for (Token i = 0; i < chains_.size(); ++i) machine_.after(0, i);
    ends_.resize(chains_.size() * operations, -1);
    machine_.run([this](Token chain) { go_on(chain); });
    return ends_;
  }

 private:
  static constexpr int operations = 60;
  struct Chain {
    config::Random random;
    int done = 0;
  };

  void go_on(Token index) {
    Chain& chain = chains_[index];
    if (chain.done > 0) ends_[index * operations + static_cast<std::size_t>(chain.done) - 1] = machine_.now();
    if (chain.done++ == operations) return;
    const auto host = static_cast<HostIndex>(index);
    const double size = chain.random.uniform();
    if (chain.random.next() % 3 == 0) machine_.set_speed(host, chain.random.next() % 3);
    if (chain.random.next() % 3 == 0) machine_.set_bandwidth(host, bandwidth_[host] / static_cast<double>(1 + chain.random.next() % 3));
    switch (chain.random.next() % 4) {
      case 0:
        return machine_.compute(host, size, index);
      case 1:
        return machine_.after(size * 0.1, index);
      default: {
        const double weight = chain.random.next() % 2 == 0 ? 1 : 0.2 + 4 * chain.random.uniform();
        return machine_.transfer(host, host, some_links(chain.random), size * 4e9, index, weight);
      }
    }
  }

  std::vector<LinkIndex> some_links(config::Random& random) const {
    std::vector<LinkIndex> links;
    for (auto left = 1 + random.next() % 4; left > 0; --left) links.push_back(static_cast<LinkIndex>(random.next() % bandwidth_.size()));
    return links;
  }

  Machine machine_;
  std::vector<double> bandwidth_;
  std::vector<Chain> chains_;
  std::vector<double> ends_;
};

class DoTheSolversAgree : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(DoTheSolversAgree, OnRandomWork) {
  const std::vector<double> own = RandomWork(Solver::automatic, GetParam()).run();
  const std::vector<double> reference = sim::run_in_child([] { return RandomWork(Solver::simgrid, GetParam()).run(); });
  ASSERT_EQ(own.size(), reference.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    ASSERT_GT(own[i], 0);
    ASSERT_NEAR(own[i], reference[i], 1e-9 * reference[i]) << "operation " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, DoTheSolversAgree, ::testing::Range<std::uint64_t>(1, 101));

std::string one_of(config::Random& random, const std::vector<std::string>& words) { return words[random.next() % words.size()]; }

// Dense or with experts on 16 GPUs, own NICs or shared, folded or not, with contention, a slow part, uneven routing.
sim::Job random_job(std::uint64_t seed) {
  config::Random random(seed);
  const std::string simulation =
      fmt::format("simulation: {{ranks: {}, collectives: {}, faults: [{}]}}\n", one_of(random, {"folded", "all"}),
                  one_of(random, {"ring", "auto", "closed", "step"}), one_of(random, {"", "gpu 3 slow 1.3", "nic 9 slow 2"}));
  const std::string overlap = one_of(random, {"", "overlap: {dp_gradients: true}\n", "overlap: {pp: true, dp_gradients: true}\n"});
  const std::string sharding = one_of(random, {"", "optimizer: {sharding: zero1}\n", "optimizer: {sharding: zero3}\n"});
  const std::string batch = "{global: 16, micro: 1, sequence: 1024}";
  if (random.next() % 3 == 0) {
    const std::string routing = one_of(random, {"balanced", "{zipf: 1.0}", "{zipf: 0.8, senders: own}"});
    return expert_job(16, one_of(random, {"{tp: 1, pp: 2, dp: 8, ep: 8}", "{tp: 2, pp: 2, dp: 4, ep: 4, sp: true}"}), batch,
                      simulation + overlap + "moe: {routing: " + routing + "}\n", 4, "{alpha: 1.2, beta: 1.3}");
  }
  const std::string parallel =
      one_of(random, {"{tp: 2, pp: 2, dp: 4}", "{tp: 4, pp: 4, dp: 1}", "{tp: 1, pp: 2, dp: 8}", "{tp: 8, pp: 1, dp: 2}"});
  sim::Job job = small_job(16, parallel, batch, simulation + overlap + sharding, random.next() % 2 == 0 ? 8 : 4);
  if (random.next() % 2 == 0)
    job.system.gpu.contention = {
        {workloads::Phase::tp, {1.1, 1.2}}, {workloads::Phase::dp, {1.3, 1.15}}, {workloads::Phase::pp, {1.05, 1.4}}};
  return job;
}

class DoTheSolversAgreeOnSteps : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(DoTheSolversAgreeOnSteps, OfRandomJobs) {
  sim::Job job = random_job(GetParam());
  const sim::StepResult own = sim::simulate_in_child(job);
  job.system.simulation.solver = Solver::simgrid;
  const sim::StepResult reference = sim::simulate_in_child(job);
  EXPECT_EQ(own.solver, "auto");
  EXPECT_EQ(reference.solver, "simgrid");
  EXPECT_NEAR(own.step_s, reference.step_s, 1e-9 * reference.step_s);
  ASSERT_EQ(own.ranks.size(), reference.ranks.size());
  for (std::size_t rank = 0; rank < own.ranks.size(); ++rank) {
    for (std::size_t phase = 0; phase < sim::phase_count; ++phase) {
      EXPECT_NEAR(own.ranks[rank].phases.seconds[phase], reference.ranks[rank].phases.seconds[phase], 1e-9 * reference.step_s)
          << "rank " << rank << " phase " << phase;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, DoTheSolversAgreeOnSteps, ::testing::Range<std::uint64_t>(1, 61));

TEST(Solver, AnUnknownNameIsRefusedWithTheNearest) {
  try {
    static_cast<void>(small_job(8, "{tp: 8, pp: 1, dp: 1}", "{global: 1, micro: 1, sequence: 1024}", "simulation: {solver: simgird}"));
    FAIL() << "accepted";
  } catch (const config::InputError& error) {
    EXPECT_NE(std::string(error.what()).find("simgrid"), std::string::npos) << error.what();
  }
}

// Flow a over the narrow link (1) and b over both: a is held to 0.5 there, so is b, and c gets what b leaves of the wide link (4): 3.5.
TEST(FairShare, WhatANarrowLinkLeavesGoesToTheOthers) {
  sim::FairShare shares;
  const LinkIndex narrow = shares.add_link(1), wide = shares.add_link(4);
  const std::array just_narrow{narrow}, just_wide{wide};
  const std::array both{narrow, wide};
  const auto a = shares.start(just_narrow), b = shares.start(both), c = shares.start(just_wide);
  EXPECT_EQ(shares.settle().size(), 3U);
  EXPECT_DOUBLE_EQ(shares.rate(a), 0.5);
  EXPECT_DOUBLE_EQ(shares.rate(b), 0.5);
  EXPECT_DOUBLE_EQ(shares.rate(c), 3.5);
  shares.end(a);
  EXPECT_EQ(shares.settle().size(), 2U);
  EXPECT_DOUBLE_EQ(shares.rate(b), 1);
  EXPECT_DOUBLE_EQ(shares.rate(c), 3);
}

// Rates are as the weights, 1 to 3, until one is held back elsewhere: what it leaves goes to the other.
TEST(FairShare, RatesAreAsTheWeights) {
  sim::FairShare shares;
  const LinkIndex wide = shares.add_link(8), narrow = shares.add_link(1.5);
  const std::array just_wide{wide};
  const std::array both{wide, narrow};
  const auto light = shares.start(just_wide, 1), heavy = shares.start(just_wide, 3);
  static_cast<void>(shares.settle());
  EXPECT_DOUBLE_EQ(shares.rate(light), 2);
  EXPECT_DOUBLE_EQ(shares.rate(heavy), 6);
  shares.end(heavy);
  const auto held_back = shares.start(both, 3);
  static_cast<void>(shares.settle());
  EXPECT_DOUBLE_EQ(shares.rate(held_back), 1.5);
  EXPECT_DOUBLE_EQ(shares.rate(light), 6.5);
}

// A link named three times carries the flow thrice: with a single one beside it, 3 r + r = 8.
TEST(FairShare, ALinkNamedKTimesIsLoadedKTimes) {
  sim::FairShare shares;
  const LinkIndex link = shares.add_link(8);
  const std::array thrice{link, link, link};
  const std::array once{link};
  const auto a = shares.start(thrice), b = shares.start(once);
  static_cast<void>(shares.settle());
  EXPECT_DOUBLE_EQ(shares.rate(a), 2);
  EXPECT_DOUBLE_EQ(shares.rate(b), 2);
}

// 100 flows from each of 40 senders to each of 40 receivers in turn, receivers of 40 different bandwidths: max-min by its definition, every
// flow has a link that is full and on which nobody gets more.
TEST(FairShare, EveryFlowHasABottleneck) {
  sim::FairShare shares;
  std::vector<double> bandwidth;
  for (int i = 0; i < 80; ++i) {
    bandwidth.push_back(1 + (i * 37) % 80);
    static_cast<void>(shares.add_link(bandwidth.back()));
  }
  std::vector<std::array<LinkIndex, 2>> ways;
  std::vector<sim::FairShare::Flow> flows;
  for (LinkIndex i = 0; i < 4000; ++i) {
    ways.push_back({i % 40, 40 + (i * 7 + i / 40) % 40});
    flows.push_back(shares.start(ways.back()));
  }
  static_cast<void>(shares.settle());
  std::vector<double> used(80), most(80);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    for (const LinkIndex link : ways[i]) {
      used[link] += shares.rate(flows[i]);
      most[link] = std::max(most[link], shares.rate(flows[i]));
    }
  }
  for (std::size_t link = 0; link < 80; ++link) EXPECT_LE(used[link], bandwidth[link] * (1 + 1e-12));
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto holds = [&](LinkIndex link) {
      return used[link] >= bandwidth[link] * (1 - 1e-12) && shares.rate(flows[i]) >= most[link] * (1 - 1e-12);
    };
    EXPECT_TRUE(holds(ways[i][0]) || holds(ways[i][1])) << "flow " << i;
  }
}

// Of each kind of event one at 1 s: they are told in the order in which they began.
TEST(EventMachine, WhatEndsAtOneInstantIsToldInTheOrderInWhichItBegan) {
  Machine machine;
  const std::array full_speed{1.0};
  const HostIndex host = machine.add_host(full_speed);
  const std::array link{machine.add_link(5)};
  machine.seal();
  std::vector<Token> told;
  machine.after(1, 0);
  machine.compute(host, 1, 1);
  machine.transfer(host, host, link, 5, 2);
  machine.run([&](Token token) { told.push_back(token); });
  EXPECT_EQ(told, (std::vector<Token>{0, 1, 2}));
  EXPECT_EQ(machine.now(), 1);
}

TEST(EventMachine, AHostComputesOneThingAtATime) {
  Machine machine;
  const std::array full_speed{1.0};
  const HostIndex host = machine.add_host(full_speed);
  machine.compute(host, 1, 0);
  EXPECT_THROW(machine.compute(host, 1, 1), std::logic_error);
}

// Two flows share 10 bytes/s; at 1 s one is halted, having moved 5 of its 10 bytes: the other goes on with all of it and ends at 1.5 s.
TEST(EventMachine, WhatIsHaltedLeavesItsShareToOthersAndNeverEnds) {
  Machine machine;
  const std::array full_speed{1.0};
  const HostIndex host = machine.add_host(full_speed);
  const std::array link{machine.add_link(10)};
  machine.transfer(host, host, link, 10, 1);
  machine.transfer(host, host, link, 10, 2);
  machine.after(1, 0);
  std::vector<Token> told;
  machine.run([&](Token token) {
    told.push_back(token);
    if (token == 0) machine.halt([](Token other) { return other == 1; });
  });
  EXPECT_EQ(told, (std::vector<Token>{0, 2}));
  EXPECT_DOUBLE_EQ(machine.now(), 1.5);
}

TEST(SimGridMachine, ASecondInOneProcessIsRefused) {
  EXPECT_THROW(static_cast<void>(sim::run_in_child([] {
                 const Machine first(Solver::simgrid), second(Solver::simgrid);
                 return std::vector<double>{};
               })),
               std::runtime_error);
}

}  // namespace
}  // namespace rehearse::tests
