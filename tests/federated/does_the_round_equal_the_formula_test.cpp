// Reserved shares: the simulated round is the formula. Weights: what a work-conserving scheduler makes of the same shares, by an
// independent simulation (reference.yaml), never slower than the formula and never faster than any schedule can be.
#include <gtest/gtest.h>

#include "sim/federated/simulate_round.hpp"
#include "tests/federated/jobs.hpp"
#include "tests/federated/reference.hpp"

namespace rehearse::federated {
namespace {

// Device n keeps 4 - n of four equal units, so that the server has n of them to do; its speed and rates make up the seconds of the row.
Job job_of_row(const config::Node& row, const std::string& sharing, const std::string& solver) {
  const std::vector<double> own_s = reference::numbers(row.at("own_s")), up_s = reference::numbers(row.at("uplink_s")),
                            down_s = reference::numbers(row.at("downlink_s")), server_s = reference::numbers(row.at("server_s"));
  constexpr double bytes = 4000, backward_and_forward = 3;
  std::string devices, cuts;
  for (std::size_t n = 0; n < own_s.size(); ++n) {
    const double units = 4 - server_s[n];
    devices +=
        fmt::format("    - {{name: d{}, speed: {} FLOP/s, samples: {}, uplink: {} B/s, downlink: {} B/s}}\n", n,
                    backward_and_forward * units * 1e9 / own_s[n], row.at("batches").as_string(), bytes / up_s[n], bytes / down_s[n]);
    cuts += fmt::format("{}d{}: u{}", n == 0 ? "" : ", ", n, units);
  }
  return job_from(
      fmt::format("model: {{kind: chain, units: [{{name: u, flops: 1e9, out: 1000, repeat: 3}}, {{name: head, flops: 1e9, params: 8, "
                  "out: 1}}]}}\nfederated:\n  devices:\n{}  server: {{speed: 3 GFLOP/s, sharing: {}}}\n  radio: {{sharing: {}}}\n"
                  "  batch: 1\n  cuts: {{{}}}\nsimulation: {{solver: {}}}\n",
                  devices, sharing, sharing, cuts, solver));
}

Plan plan_of_row(const Job& job, const config::Node& row) {
  std::vector<LinkShares> shares;
  for (const config::Node& device : row.at("share").items()) {
    const std::vector<double> share = reference::numbers(device);
    shares.push_back({share[0], share[1], share[2]});
  }
  return plan_with_shares(job, make_plan(job).cuts, shares);
}

class Rows : public testing::TestWithParam<std::string> {};

TEST_P(Rows, reserved_and_work_conserving) {
  for (const config::Node& row : reference::file().at("reserved_and_work_conserving").items()) {
    for (const std::string sharing : {"reserved", "weighted"}) {
      const Job job = job_of_row(row, sharing, GetParam());
      const Plan plan = plan_of_row(job, row);
      const SimulatedRound round = simulate_round(job, plan);
      const std::vector<double> expected_s = reference::numbers(row.at(sharing == "reserved" ? "reserved_s" : "work_conserving_s"));
      const double digits = sharing == "reserved" ? 1e-9 : 1e-6;  // of the shares in the file; of the reference simulation
      for (std::size_t n = 0; n < expected_s.size(); ++n) {
        EXPECT_NEAR(round.result.devices[n].end_s, expected_s[n], digits * expected_s[n]) << sharing << " " << n;
        if (sharing == "weighted") continue;
        EXPECT_NEAR(round.result.devices[n].end_s, plan.latency_s[n], 1e-9 * plan.latency_s[n]);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Solvers, Rows, testing::Values("auto", "simgrid"));

void expect_phases_add_up(const RoundResult& result) {
  for (const DeviceRound& device : result.devices) EXPECT_NEAR(device.phases.sum(), result.round_s, 1e-9 * result.round_s);
}

class RandomJobs : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomJobs, reserved_is_the_formula) {
  for (const char* radio : {"{}", "{duplex: tdd}"}) {
    const Job job = job_from(random_job_text(GetParam(), {.radio = radio, .server = "", .more = "  shares: tuned\n"}));
    const Plan plan = make_plan(job);
    const RoundResult formula = round_by_formula(job, plan), simulated = simulate_round(job, plan).result;
    EXPECT_NEAR(simulated.round_s, formula.round_s, 1e-9 * formula.round_s) << GetParam() << radio;
    expect_phases_add_up(formula);
    expect_phases_add_up(simulated);
    for (std::size_t n = 0; n < job.devices.size(); ++n) {
      for (std::size_t phase = 0; phase < phase_count; ++phase)
        EXPECT_NEAR(simulated.devices[n].phases.seconds[phase], formula.devices[n].phases.seconds[phase], 1e-8 * formula.round_s) << phase;
    }
    EXPECT_GE(plan.round_s, plan.any_schedule_s * (1 - 1e-12));
  }
}

TEST_P(RandomJobs, weighted_is_never_slower_than_the_formula) {
  for (const char* shares : {"tuned", "equal"}) {
    const Job job =
        job_from(random_job_text(GetParam(), {.radio = GetParam() % 2 == 0 ? "{sharing: weighted}" : "{sharing: weighted, duplex: tdd}",
                                              .server = ", sharing: weighted",
                                              .more = fmt::format("  shares: {}\n", shares)}));
    const Plan plan = make_plan(job);
    const SimulatedRound round = simulate_round(job, plan);
    EXPECT_LE(round.result.round_s, round_by_formula(job, plan).round_s * (1 + 1e-9));
    EXPECT_GE(round.result.round_s, plan.any_schedule_s);
    expect_phases_add_up(round.result);
  }
}

TEST_P(RandomJobs, one_at_a_time_is_never_faster_than_any_schedule) {
  for (const char* server : {", mode: sequential", ", sharing: fifo"}) {
    for (const char* radio : {"{sharing: fifo}", "{sharing: fifo, duplex: tdd}", "{sharing: weighted, duplex: tdd}"}) {
      const Job job = job_from(random_job_text(GetParam(), {.radio = radio, .server = server}));
      const Plan plan = make_plan(job);
      const SimulatedRound round = simulate_round(job, plan);
      EXPECT_GE(round.result.round_s, round_by_formula(job, plan).round_s * (1 - 1e-12));
      EXPECT_GE(round.queue_s, 0);
      expect_phases_add_up(round.result);
    }
  }
}

TEST_P(RandomJobs, joined_batches_are_the_formula) {
  const Job job =
      job_from(random_job_text(GetParam(), {.server = ", mode: batched", .more = "  leakage: {measure: offloaded, limit: 1}\n"}));
  const Plan plan = make_plan(job);
  const RoundResult formula = round_by_formula(job, plan), simulated = simulate_round(job, plan).result;
  EXPECT_NEAR(simulated.round_s, formula.round_s, 1e-9 * formula.round_s);
  expect_phases_add_up(formula);
  expect_phases_add_up(simulated);
}

// Two devices of 100 and 50 samples, in batches of 50: two messages, both as large as a whole batch; the second one is the first device's
// alone.
TEST(Broadcast, is_one_message_at_the_rate_of_the_slowest_listener) {
  const Job job = job_from(
      "model: resnet18-cifar\nfederated:\n  devices:\n"
      "    - {name: near, speed: 50 GFLOP/s, samples: 100, uplink: 100 Mbps, downlink: 80 Mbps}\n"
      "    - {name: far, speed: 50 GFLOP/s, samples: 50, uplink: 100 Mbps, downlink: 8 Mbps}\n"
      "  server: {speed: 1 TFLOP/s, mode: batched}\n  batch: 50\n  cuts: block4\n  broadcast: true\n");
  const RoundResult round = simulate_round(job, make_plan(job)).result;
  const double message_bytes = 50 * 128 * 1024.0;  // block4's smashed data are 128 KiB a sample
  EXPECT_NEAR(round.devices[0].phases[Phase::downlink], message_bytes / 1e6 + message_bytes / 1e7, 1e-9);
  EXPECT_NEAR(round.devices[1].phases[Phase::downlink], message_bytes / 1e6, 1e-9);
}

// One message for all: as large as the largest device's, at the rate of the slowest, before anybody goes backward.
TEST_P(RandomJobs, broadcast_gradients_are_the_formula) {
  const std::string more = "  leakage: {measure: offloaded, limit: 1}\n";
  const std::string alone = random_job_text(GetParam(), {.server = ", mode: batched", .more = more});
  const Job job = job_from(alone + "  broadcast: true\n");
  const Plan plan = make_plan(job);
  const RoundResult formula = round_by_formula(job, plan), simulated = simulate_round(job, plan).result;
  EXPECT_NEAR(simulated.round_s, formula.round_s, 1e-9 * formula.round_s);
  EXPECT_NEAR(simulated.downlink.busy_s, formula.downlink.busy_s, 1e-9 * formula.round_s);
  EXPECT_GE(formula.round_s, plan.any_schedule_s);
  expect_phases_add_up(formula);
  expect_phases_add_up(simulated);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomJobs, testing::Range<std::uint64_t>(1, 101));

// Alike devices are simulated once; slowing one of them by nothing tells them apart, and nothing changes.
TEST(AlikeDevices, folded_equals_all) {
  for (const std::string sharing : {"reserved", "weighted"}) {
    const Job job =
        job_from(fmt::format("model: vgg5-cifar\nfederated:\n  devices:\n"
                             "    - {{name: pi, count: 5, speed: 9 GFLOP/s, samples: 120, uplink: 40 Mbps, downlink: 90 Mbps}}\n"
                             "    - {{name: nano, count: 3, speed: 50 GFLOP/s, samples: 300, uplink: 80 Mbps, downlink: 90 Mbps}}\n"
                             "  server: {{speed: 100 GFLOP/s, sharing: {}}}\n  radio: {{sharing: {}}}\n",
                             sharing, sharing));
    const Plan plan = make_plan(job);
    const SimulatedRound folded = simulate_round(job, plan);
    Conditions apart;
    for (std::size_t n = 0; n < job.devices.size(); ++n) apart.slow.push_back({.device = n, .factor = 1});
    const SimulatedRound all = simulate_round(job, plan, apart);
    EXPECT_EQ(folded.result.simulated, 2U);
    EXPECT_EQ(all.result.simulated, 8U);
    for (std::size_t n = 0; n < job.devices.size(); ++n)
      EXPECT_NEAR(folded.result.devices[n].end_s, all.result.devices[n].end_s, 1e-9 * all.result.round_s);
  }
}

}  // namespace
}  // namespace rehearse::federated
