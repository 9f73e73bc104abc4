// Tables as nccl-tests print them, made on a cluster that is known, give its links back.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "config/node.hpp"
#include "sim/cost/communication.hpp"
#include "sim/engine/lone_collective.hpp"
#include "tests/calibrate/measurements.hpp"

namespace rehearse::calibrate::testing {
namespace {

using cli::Outcome;
using cli::run_shell;

// The times that the model has for all-gathers on the first `hosts` nodes of a cluster file.
std::string table(const std::filesystem::path& cluster, int hosts) {
  const int ranks = 8 * hosts;
  const sim::Job job = sim::cluster_alone(cluster.string(), ranks, {});
  const sim::CommunicationModel model(job.system.cluster, job.workload, "auto", job.system.software.collectives);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  std::string text = "# Collective test starting: all_gather_perf\n";
  for (int rank = 0; rank < ranks; ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on      node{} device {:2} [0x1b] NVIDIA H100 80GB HBM3\n", rank, 100 + rank,
                        rank / 8, rank % 8);
  for (double bytes = 1 << 16; bytes < 9e9; bytes *= 4) {
    const workloads::Communication what{"gather", workloads::CollectiveKind::all_gather, workloads::GroupKind::dp_cp, bytes,
                                        workloads::Pass::update};
    const double seconds = model.price(what, members).seconds(), algbw = bytes / seconds / 1e9;
    const std::string columns = fmt::format("{:.2f} {:.2f} {:.2f}", seconds * 1e6, algbw, algbw * (ranks - 1) / ranks);
    text += fmt::format("{:.0f} {:.0f} float none -1 {} 0 {} 0\n", bytes, bytes / 4, columns, columns);
  }
  return text;
}

class Tables : public ::testing::Test {
 protected:
  // Without protocols that would be faster where latency tells.
  void SetUp() override {
    const std::string none = "ll: none, ll128: none";
    write(folder_.path() / "base.yaml", fmt::format("like: dgx-h100-ndr400\nintra_node: {{{}}}\nnics: {{{}}}\n", none, none));
    write(folder_.path() / "real.yaml",
          "like: base.yaml\n"
          "intra_node: {efficiency: 0.72, latency: 9 us}\n"
          "nics: {efficiency: 0.8, latency: 25 us, by_nodes: {2: 0.7, 4: 0.35}}\n");
    for (const int hosts : {1, 2, 4}) write(folder_.path() / fmt::format("{}.txt", hosts), table(folder_.path() / "real.yaml", hosts));
  }
  [[nodiscard]] Outcome shell(const std::string& command) const { return run_shell(command, folder_.path()); }
  [[nodiscard]] double fitted(const char* path) const { return number_in(folder_.path() / "my.yaml", path); }
  cli::TemporaryFolder folder_;
};

TEST_F(Tables, LinksAndNicsComeBackWithinOnePercent) {
  const Outcome outcome = shell("\"$rehearse\" calibrate network 1.txt 2.txt 4.txt --from base.yaml --cluster my.yaml");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NEAR(fitted("intra_node.efficiency") / 0.72, 1, 0.01) << outcome.out;
  EXPECT_NEAR(fitted("intra_node.latency") / 9, 1, 0.01) << outcome.out;
  EXPECT_NEAR(fitted("nics.latency") / 25, 1, 0.01) << outcome.out;
  EXPECT_NEAR(fitted("nics.by_nodes.2") / 0.7, 1, 0.01) << outcome.out;
  EXPECT_NEAR(fitted("nics.by_nodes.4") / 0.35, 1, 0.01) << outcome.out;
  EXPECT_EQ(shell("\"$rehearse\" topology my.yaml --gpus 32").code, 0) << "a file that is like another can be shown";
}

TEST_F(Tables, OneNodeSaysNothingOfNics) {
  ASSERT_EQ(shell("\"$rehearse\" calibrate network 1.txt --from base.yaml --cluster my.yaml").code, 0);
  EXPECT_NEAR(fitted("intra_node.efficiency") / 0.72, 1, 0.01);
  EXPECT_EQ(fitted("nics.latency"), 6.6) << "the shipped cluster's";
}

// Where the file's own network would have lost rate by then, one table is of its number of nodes alone: 0.9 is more than `at_scale` leaves.
TEST_F(Tables, OfManyNodesHoldThere) {
  write(folder_.path() / "many.yaml", "like: vtrain-a100-80g\nnics: {efficiency: 0.9, by_nodes: {64: 0.9}}\n");
  write(folder_.path() / "64.txt", table(folder_.path() / "many.yaml", 64));
  ASSERT_EQ(shell("\"$rehearse\" calibrate network 64.txt --from vtrain-a100-80g --cluster my.yaml").code, 0);
  EXPECT_NEAR(fitted("nics.by_nodes.64") / 0.9, 1, 0.02);
  EXPECT_EQ(fitted("nics.efficiency"), -1);
}

TEST_F(Tables, WrongOnesAreRefused) {
  EXPECT_EQ(shell("\"$rehearse\" calibrate network 1.txt").code, 2) << "no cluster to begin with";
  EXPECT_EQ(shell("\"$rehearse\" calibrate network 1.txt --from no-such").code, 2);
  EXPECT_EQ(shell("\"$rehearse\" calibrate network 2.txt --from gb200-nvl72").code, 2) << "nodes of 4";
  EXPECT_EQ(shell("\"$rehearse\" calibrate network real.yaml --from dgx-h100-ndr400").code, 2) << "no table";
  EXPECT_EQ(shell("\"$rehearse\" calibrate network 1.txt --from dgx-h100-ndr400 --job real.yaml").code, 2);
  const Outcome unknown = shell("\"$rehearse\" calibrate netwrk 1.txt");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean 'network'"), std::string::npos) << unknown.err;
}

}  // namespace
}  // namespace rehearse::calibrate::testing
