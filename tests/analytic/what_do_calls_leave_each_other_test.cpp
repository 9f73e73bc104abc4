// Calls of different groups, and copies to the host, that meet on a GPU's ports.
#include <gtest/gtest.h>

#include "../engine/jobs.hpp"
#include "sim/analytic/port_sharing.hpp"
#include "sim/analytic/predict.hpp"
#include "sim/engine/simulate.hpp"

namespace rehearse::tests {
namespace {

sim::PortTimes sends(double transfer_s, double scale_up_s, double nic_s, double messages = 1) {
  return {transfer_s, scale_up_s, nic_s, messages * scale_up_s, messages * nic_s};
}

// Both fill the port: half of it each. One wants a quarter of it: that it has, and the other three quarters. Nothing is left to divide
// where both together want less than all, or use different ports.
TEST(CallsThatMeet, DivideAPortFairly) {
  const auto factors = [](const sim::PortTimes& calls, const sim::PortTimes& beside) {
    const sim::ContentionPair pair = sim::where_they_meet(calls, beside, beside.transfer_s);
    return std::pair(pair.alpha, pair.beta);
  };
  EXPECT_EQ(factors(sends(4, 4, 0), sends(8, 8, 0)), std::pair(2.0, 2.0));
  EXPECT_EQ(factors(sends(4, 4, 0), sends(8, 2, 8)), std::pair(4.0 / 3, 1.0));
  EXPECT_EQ(factors(sends(4, 4, 0), sends(8, 8, 0, 3)), std::pair(4.0, 4.0 / 3));  // by messages: one of four, three of four
  EXPECT_EQ(factors(sends(4, 1, 4), sends(8, 4, 0)), std::pair(1.0, 1.0));
  EXPECT_EQ(factors(sends(4, 4, 0), sends(8, 0, 8)), std::pair(1.0, 1.0));
}

// Half of what is beside is latency, in which the port is free: each advances at half of its speed for half of the time.
TEST(CallsThatMeet, LeaveThePortDuringLatencies) {
  const sim::ContentionPair pair = sim::where_they_meet(sends(4, 4, 0), sends(8, 8, 0), 16);
  EXPECT_EQ(std::pair(pair.alpha, pair.beta), std::pair(1.5, 1.5));
}

// 6 s of computation, 2 of latencies and 4 of bytes: 6 + 2 + 2 * 4 s beside a copy, which has had 6 + 2 + 4 s of its own.
TEST(CallsThatMeet, SlowAPassByItsBytes) {
  sim::PassParts pass;
  pass.compute_s = 6;
  pass.calls_s = 6;
  pass.ports = sends(4, 4, 0);
  const sim::ContentionPair pair = sim::of_a_pass(pass, {}, sends(8, 8, 0), 8);
  EXPECT_DOUBLE_EQ(pair.alpha, 16.0 / 12);
  EXPECT_DOUBLE_EQ(pair.beta, 16.0 / 12);
}

// A PCIe box: everything leaves a GPU over its one port.
sim::Job in_a_box(const char* parallel, const char* batch, const char* extra) {
  sim::Job job = small_job(16, parallel, batch, extra);
  topology::ClusterSpec& cluster = job.system.cluster;
  cluster.intra_kind = topology::IntraNode::pcie;
  cluster.intra.bandwidth_bytes_per_s = cluster.host.bandwidth_bytes_per_s = 40e9;
  cluster.intra.efficiency = cluster.host.efficiency = 0.7;
  return job;
}

class CallsInAPcieBox : public testing::TestWithParam<SmallJob> {};

// 2 %, as wherever formula and timeline are compared.
TEST_P(CallsInAPcieBox, TakeAsLongAsOnTheTimeline) {
  const SmallJob& small = GetParam();
  const sim::Job job = in_a_box(small.parallel, small.batch, small.extra);
  const double predicted = sim::predict(job).step_s, simulated = sim::simulate_in_child(job).step_s;
  EXPECT_NEAR(simulated, predicted, 0.02 * predicted) << 100 * (simulated / predicted - 1) << " %";
}

constexpr const char* tp2 = "{tp: 2, dp: 8, sp: true}";
constexpr const char* batch = "{global: 32, micro: 1, sequence: 4096}";
INSTANTIATE_TEST_SUITE_P(
    Jobs, CallsInAPcieBox,
    testing::Values(SmallJob{"offload", 16, "{tp: 4, dp: 4, sp: true}", batch, "offload: {activations: true}"},
                    SmallJob{"offload_and_pipeline", 16, "{tp: 4, pp: 2, dp: 2, sp: true}", batch,
                             "schedule: zb-h1\noffload: {activations: true}\noverlap: {tp: false}"},
                    SmallJob{"reductions", 16, tp2, "{global: 8, micro: 1, sequence: 4096}", "overlap: {tp: false, dp_gradients: true}"},
                    SmallJob{"gathers_of_each", 16, tp2, batch,
                             "optimizer: {sharding: zero3}\noverlap: {tp: false, dp_gradients: true, dp_parameters: true}"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rehearse::tests
