// Rounds that were solved exactly by other means (primal and dual optimisation, brute force over cuts): same optimum, cuts, shares, prices.
#include <gtest/gtest.h>

#include "sim/federated/cuts.hpp"
#include "sim/federated/shares.hpp"
#include "tests/federated/instances.hpp"

namespace rehearse::federated {
namespace {

using reference::Instance;

TEST(AreTheReferenceSolutionsMet, every_optimum_and_its_cuts) {
  for (const Instance& instance : reference::instances()) {
    const ChosenCuts chosen = choose_cuts(instance.problem);
    const double optimum_s = reference::number(instance.expected.at("optimum_s"));
    EXPECT_NEAR(chosen.round_s, optimum_s, 1e-9 * optimum_s) << instance.name;
    EXPECT_LE(chosen.bound_s, optimum_s * (1 + 1e-9)) << instance.name;
    EXPECT_EQ(instance.named(chosen.cuts), reference::words(instance.expected.at("cuts"))) << instance.name;
    EXPECT_TRUE(chosen.proven) << instance.name;
  }
}

TEST(AreTheReferenceSolutionsMet, shares_and_prices) {
  for (const Instance& instance : reference::instances()) {
    const Shares shares = exact_shares(chosen(instance.problem, choose_cuts(instance.problem).cuts));
    const std::vector<config::Node> devices = instance.expected.at("shares").items();
    for (std::size_t n = 0; n < devices.size(); ++n) {
      const std::vector<double> expected = reference::numbers(devices[n]);
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(shares.share[n][i], expected[i], 1e-7) << instance.name << " " << n;
    }
    const std::vector<double> prices = reference::numbers(instance.expected.at("prices"));
    for (std::size_t i = 0; i < prices.size(); ++i) EXPECT_NEAR(shares.prices[i], prices[i], 1e-7) << instance.name;
  }
}

// Every cut of every model to the byte, and its leakage.
TEST(AreTheReferenceSolutionsMet, cuts_of_the_ready_made_models) {
  const config::Node models = reference::file().at("models");
  for (const std::string& name : models.keys()) {
    const Job job = read_job(name,
                             config::Node::load_text("{model: " + name +
                                                         ", federated: {server: {speed: 1 TFLOP/s}, devices: [{name: d, speed: 1 GFLOP/s, "
                                                         "samples: 1, uplink: 1 Mbps, downlink: 1 Mbps}]}}",
                                                     name),
                             {});
    const std::vector<config::Node> expected = models.at(name).items();
    ASSERT_EQ(job.cuts.size(), expected.size()) << name;
    for (std::size_t c = 0; c < expected.size(); ++c) {
      EXPECT_EQ(job.cuts[c].name, expected[c].at("cut").as_string());
      EXPECT_EQ(job.cuts[c].forward_flops, reference::number(expected[c].at("device_flops"))) << name << " " << job.cuts[c].name;
      EXPECT_EQ(job.cuts[c].parameter_bytes, reference::number(expected[c].at("device_bytes"))) << name << " " << job.cuts[c].name;
      EXPECT_EQ(job.cuts[c].smashed_bytes, reference::number(expected[c].at("smashed_bytes"))) << name << " " << job.cuts[c].name;
      EXPECT_NEAR(job.leakage[c], reference::number(expected[c].at("leakage")), 1e-12) << name << " " << job.cuts[c].name;
    }
  }
}

}  // namespace
}  // namespace rehearse::federated
