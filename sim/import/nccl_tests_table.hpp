// What nccl-tests print: a table of sizes, times and bandwidths.
#pragma once

#include <string>
#include <vector>

namespace rehearse::sim {

struct NcclTestsRow {
  double bytes = 0;   // as nccl-tests count: of the buffer of all-reduce and broadcast, of the gathered buffer of the others
  double time_s = 0;  // out of place
  double algbw_bytes_per_s = 0, busbw_bytes_per_s = 0;
  int line = 0;
};

struct NcclTestsTable {
  std::string collective;  // "all_reduce", ...; by the file's own line, else by what busbw is of algbw
  int ranks = 0;           // from the lines "#  Rank ..."
  int hosts = 0;
  std::string device;              // "NVIDIA H100 80GB HBM3", "" where the lines do not say
  std::vector<NcclTestsRow> rows;  // by ascending size, those of 0 bytes left out
};

// Throws InputError with line and column for a row that is cut off or no numbers, sizes that do not ascend, bandwidths that do not follow
// from size and time, and where there are no rows.
[[nodiscard]] NcclTestsTable read_nccl_tests(const std::string& path);

// Alpha and beta of T = rounds alpha + factor S / B by least squares on relative errors, over all rows: a ring's 2 (n - 1) rounds and
// factor 2 (n - 1)/n for all-reduce, n - 1 and (n - 1)/n for all-gather and reduce-scatter and all-to-all.
struct AlphaBeta {
  double alpha_s = 0;         // of a round
  double bytes_per_s = 0;     // bus bandwidth of large messages
  double worst_residual = 0;  // relative
};
[[nodiscard]] AlphaBeta fit_alpha_beta(const NcclTestsTable& table);

}  // namespace rehearse::sim
