// Where schedules stagger the steps of their stages, a rank's step begins when it must, to compute its first micro-batch when it did.
#include <gtest/gtest.h>

#include "sim/engine/execution.hpp"
#include "workloads/step_graph.hpp"

namespace rehearse::tests {
namespace {

using workloads::OpId;
using workloads::OpKind;
using workloads::Phase;
using workloads::Stream;

// Each rank gathers its parameters for 3 s and does the host's work of a step for 1 s, side by side, then computes for 5 s; the second one
// waits for the first one's message, which takes 2 s.
TEST(WhenDoesAStaggeredStepBegin, so_that_what_comes_first_has_ended) {
  workloads::StepGraphBuilder builder({{0, 0, 1}, {1, 1, 1}});
  const std::uint32_t work = builder.add_work({});
  const std::uint32_t group = builder.add_group(workloads::GroupKind::pp, {0, 1}, {0, 1});
  const std::uint32_t call =
      builder.add_call({"m", workloads::CollectiveKind::send_recv, workloads::GroupKind::pp, 1, workloads::Pass::forward}, 1, group);
  std::vector<OpId> gathers, hosts, computes;
  for (const std::uint32_t rank : {0U, 1U}) {
    gathers.push_back(builder.add({.kind = OpKind::copy, .stream = Stream::dp, .phase = Phase::dp, .rank = rank, .item = call}, "gather"));
    hosts.push_back(builder.add({.rank = rank, .item = work, .microbatch = -1}, "host"));
    computes.push_back(builder.add({.rank = rank, .item = work, .microbatch = 0}, "compute"));
    builder.depend(gathers.back(), computes.back());
  }
  const OpId message = builder.add({.kind = OpKind::p2p, .stream = Stream::dp, .phase = Phase::pp, .rank = 0, .item = call}, "message");
  builder.depend(computes[0], message);
  builder.depend(message, computes[1]);
  builder.set_receiver(message, 1);
  workloads::StepGraph graph = std::move(builder).freeze();

  sim::Execution run;
  run.arrive_s.assign(graph.size(), 0);
  run.end_s.assign(graph.size(), 0);
  const auto lasts = [&](OpId id, double from_s, double to_s) {
    run.arrive_s[id] = from_s;
    run.end_s[id] = to_s;
  };
  for (const OpId id : gathers) lasts(id, 0, 3);
  for (const OpId id : hosts) lasts(id, 0, 1);
  lasts(computes[0], 3, 8);
  lasts(message, 8, 10);
  lasts(computes[1], 10, 15);

  EXPECT_EQ(sim::step_origins(graph, run), (std::vector<double>{0, 0}));
  EXPECT_EQ(sim::step_length(graph, run), 15);
  graph.staggered = true;
  EXPECT_EQ(sim::step_origins(graph, run), (std::vector<double>{0, 10 - 3}));  // what it gathers has 3 s before its first computation
  EXPECT_EQ(sim::step_length(graph, run), 10);                                 // rank 0: gathers, computes, sends
}

}  // namespace
}  // namespace rehearse::tests
