// Jobs whose GPUs share NICs, host links and uplinks, some with a slow part or tokens routed unevenly (one per line of shared-ports.jsonl):
// what the ranks of a class share counts once for each of them, whoever else is simulated. The last three: a message over several links of
// one class, a NIC whose GPUs are of another class than those of its like, stages that share a NIC on a torus.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "places.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/job/job.hpp"

namespace rehearse::tests {
namespace {

const std::string data = REHEARSE_SOURCE_DIR "/tests/engine/data/";

double step_s(sim::Job job, bool all_ranks) {
  job.system.simulation.all_ranks = all_ranks;
  return sim::simulate_in_child(job).step_s;
}

sim::Job load(const std::string& name, const std::vector<std::pair<std::string, std::string>>& sets = {},
              const std::vector<std::string>& faults = {}) {
  return sim::load_job({.path = data + name, .sets = sets, .seed = {}, .faults = faults});
}

void expect_folded_is_all(const sim::Job& job) {
  const double all = step_s(job, true);
  EXPECT_NEAR(step_s(job, false), all, 1e-9 * all);
}

// One NIC for two GPUs: a GPU that is slower by a ten-thousandth makes the step longer by no more than that.
TEST(FoldedEqualsAllWherePortsAreShared, a_hardly_slower_gpu_costs_hardly_more) {
  for (const char* collectives : {"ring", "auto", "closed", "step"}) {
    const std::vector<std::pair<std::string, std::string>> sets{{"simulation.collectives", collectives}};
    const double healthy = step_s(load("shared-nic.yaml", sets), false);
    const double slower = step_s(load("shared-nic.yaml", sets, {"gpu 1 slow 1.0001"}), false);
    EXPECT_GE(slower, healthy * (1 - 1e-9)) << collectives;
    EXPECT_LE(slower, healthy * 1.0001) << collectives;
    EXPECT_NEAR(healthy, step_s(load("shared-nic.yaml", sets), true), 1e-9 * healthy) << collectives;
  }
}

// A slower GPU never makes the step faster where two GPUs share a link to the host.
TEST(FoldedEqualsAllWherePortsAreShared, a_slower_gpu_at_a_shared_host_link) {
  const std::vector<std::pair<std::string, std::string>> sets{{"simulation.granularity", "stage"}, {"simulation.collectives", "closed"}};
  double last = 0;
  for (const char* fault : {"gpu 1 slow 1.0001", "gpu 1 slow 1.1", "gpu 1 slow 1.5"}) {
    const sim::Job job = load("shared-host-link.yaml", sets, {fault});
    const double now = step_s(job, false);
    EXPECT_GE(now, last) << fault;
    EXPECT_NEAR(now, step_s(job, true), 1e-9 * now) << fault;
    last = now;
  }
}

TEST(FoldedEqualsAllWherePortsAreShared, shipped_cluster) {
  const std::vector<std::pair<std::string, std::string>> sets{{"simulation.granularity", "stage"}};
  expect_folded_is_all(load("shared-nic-p4d.yaml", sets, {"gpu 1 slow 1.0001"}));
  expect_folded_is_all(load("shared-nic-p4d-zipf.yaml", {{"simulation.granularity", "stage"}, {"batch.global", "32"}}));
}

class Listed : public testing::TestWithParam<int> {};

TEST_P(Listed, FoldedEqualsAll) {
  std::ifstream lines(data + "shared-ports.jsonl");
  std::string line;
  for (int i = 0; i <= GetParam(); ++i) ASSERT_TRUE(std::getline(lines, line));
  config::Node node = config::Node::load_text(line, "shared-ports.jsonl");
  node.set("simulation.granularity", "stage");
  expect_folded_is_all(sim::read_job(node, "listed"));
}

INSTANTIATE_TEST_SUITE_P(FoldedEqualsAllWherePortsAreShared, Listed, testing::Range(0, 43));

}  // namespace
}  // namespace rehearse::tests
