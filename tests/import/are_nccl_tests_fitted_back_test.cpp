// A table as nccl-tests print it, made with a known latency and bandwidth, gives both back.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/import/nccl_tests_table.hpp"
#include "tests/import/import_file.hpp"

namespace rehearse::sim::testing {
namespace {

struct Made {
  std::string collective;
  int ranks;
  double alpha_s, bytes_per_s;
};

std::string table(const Made& made, int from_exponent) {
  std::string text = fmt::format("# Collective test starting: {}_perf\n# Using devices\n", made.collective);
  for (int rank = 0; rank < made.ranks; ++rank) {
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on      node1 device {:2} [0x{:02x}] NVIDIA H100 80GB HBM3\n", rank, 100 + rank,
                        rank, rank);
  }
  text += "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n";
  const bool reduces = made.collective == "all_reduce";
  const double share = static_cast<double>(made.ranks - 1) / made.ranks, factor = reduces ? 2 * share : share,
               rounds = (reduces ? 2.0 : 1.0) * (made.ranks - 1);
  for (int exponent = from_exponent; exponent <= 33; ++exponent) {
    const double bytes = static_cast<double>(std::int64_t{1} << static_cast<unsigned>(exponent));
    const double seconds = rounds * made.alpha_s + factor * bytes / made.bytes_per_s, algbw = bytes / seconds / 1e9;
    // Seven places: from 10,000 us on no point is printed.
    const std::string time = seconds < 0.01 ? fmt::format("{:.2f}", seconds * 1e6) : fmt::format("{:.0f}", seconds * 1e6);
    const std::string columns = fmt::format("{} {:.2f} {:.2f}", time, algbw, algbw * factor);
    text += fmt::format("{:12.0f} {:13.0f} float sum -1 {} 0 {} 0\n", bytes, bytes / 4, columns, columns);
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.4\n";
}

std::string written(const std::string& text) {
  std::string path = (std::filesystem::path(::testing::TempDir()) / fmt::format("nccl-tests-{}.txt", getpid())).string();
  std::ofstream(path) << text;
  return path;
}

TEST(NcclTests, LatencyAndBandwidthComeBackWithinOnePercent) {
  for (const Made& made : {Made{"all_reduce", 8, 3.3e-6, 366e9}, Made{"all_gather", 8, 5e-6, 230e9}, Made{"reduce_scatter", 4, 9e-6, 20e9},
                           Made{"alltoall", 16, 2e-6, 700e9}}) {
    const NcclTestsTable read = read_nccl_tests(written(table(made, 20)));
    EXPECT_EQ(read.collective, made.collective);
    EXPECT_EQ(read.ranks, made.ranks);
    EXPECT_EQ(read.hosts, 1);
    const AlphaBeta fit = fit_alpha_beta(read);
    EXPECT_NEAR(fit.alpha_s / made.alpha_s, 1, 0.01) << made.collective;
    EXPECT_NEAR(fit.bytes_per_s / made.bytes_per_s, 1, 0.01) << made.collective;
  }
}

TEST(NcclTests, GiveAClusterItsLatencyAndEfficiency) {
  const ImportedFile file = import_file("nccl-tests", written(table({"all_reduce", 8, 4e-6, 360e9}, 20)), {});
  EXPECT_EQ(value_of(file, "gpu"), "h100-sxm5-80g");
  EXPECT_NEAR(std::stod(value_of(file, "intra_node.efficiency")), 360.0 / 450, 0.008);
  EXPECT_NEAR(std::stod(value_of(file, "intra_node.latency")), 4, 0.04);  // us
}

}  // namespace
}  // namespace rehearse::sim::testing
