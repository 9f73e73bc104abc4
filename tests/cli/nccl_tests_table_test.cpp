// A simulated cluster's table is read as nccl-tests' own: the importer gets bandwidth and latency of its links back.
#include <gtest/gtest.h>

#include "sim/import/nccl_tests_table.hpp"
#include "tests/cli/program.hpp"

namespace rehearse::cli {
namespace {

sim::NcclTestsTable table_of(const TemporaryFolder& folder, const std::string& collective) {
  const Outcome outcome = run_shell("exec \"$rehearse\" simulate dgx-h100-ndr400 --gpus 8 --collective " + collective +
                                        " --algorithm ring --set simulation.protocol=simple --size 1MiB..1GiB -o out",
                                    folder.path());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return sim::read_nccl_tests((folder.path() / "out" / "nccl-tests.txt").string());
}

TEST(NcclTestsTable, OfARingHasTheBandwidthOfTheClustersLinks) {
  for (const std::string collective : {"all-reduce", "all-gather", "reduce-scatter"}) {
    const TemporaryFolder folder;
    const sim::NcclTestsTable table = table_of(folder, collective);
    EXPECT_EQ(table.ranks, 8);
    EXPECT_EQ(table.hosts, 1);
    EXPECT_EQ(table.rows.size(), 11U);
    // platforms/clusters/dgx-h100-ndr400.yaml: 450 GB/s x 0.813; a ring takes T = rounds alpha + factor S/B.
    const sim::AlphaBeta fit = sim::fit_alpha_beta(table);
    EXPECT_NEAR(fit.bytes_per_s, 0.813 * 450e9, 0.01 * 366e9) << collective;
    EXPECT_LT(fit.worst_residual, 0.01) << collective;  // times are printed with two digits
  }
}

TEST(NcclTestsTable, CountsAreOfARanksShare) {
  const TemporaryFolder folder;
  static_cast<void>(table_of(folder, "all-gather"));
  const std::string text = content_of(folder.path() / "out" / "nccl-tests.txt");
  EXPECT_NE(text.find("# Collective test starting: all_gather_perf"), std::string::npos);
  EXPECT_NE(text.find("     1048576         32768     float    none      -1"), std::string::npos) << text;  // 2^20 / 4 / 8
}

}  // namespace
}  // namespace rehearse::cli
