// Collectives measured alone as nccl-tests print them, column by column, to be laid beside a real cluster's output.
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>

#include "sim/engine/lone_collective.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;

// As nccl-tests' programs are called; "" where there is none.
std::string_view program_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "alltoall";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::send_recv:
      return "sendrecv";
  }
  return "";
}

constexpr double element = 4;  // bytes of a float

// Elements that a rank gives: of the gathered buffer its share.
double count_of(const LoneCollective& each) {
  const bool shared =
      each.kind == CollectiveKind::all_gather || each.kind == CollectiveKind::reduce_scatter || each.kind == CollectiveKind::all_to_all;
  return std::max(1.0, std::floor(each.bytes / element / (shared ? each.gpus : 1)));
}

void write_head(const Report& report, const LoneCollectives& all, std::ostream& out) {
  fmt::print(out, "# Collective test starting: {}_perf\n", program_of(all.front().kind));
  fmt::print(out, "# Simulated by rehearse: {} GPUs of {}\n#\n# Using devices\n", all.front().gpus, report.job.cluster);
  for (int rank = 0; rank < all.front().gpus; ++rank) {
    const int node = rank / all.front().gpus_per_node, device = rank % all.front().gpus_per_node;
    fmt::print(out, "#  Rank {:2} Group  0 Pid      0 on node{} device {:2} [0x00] {}\n", rank, node, device, report.job.gpu);
  }
  fmt::print(out, "#\n#{:>12}{:>14}{:>10}{:>8}{:>8}{:>12}{:>9}{:>9}{:>8}\n", "size", "count", "type", "redop", "root", "time", "algbw",
             "busbw", "#wrong");
  fmt::print(out, "#{:>12}{:>14}{:>10}{:>8}{:>8}{:>12}{:>9}{:>9}{:>8}\n", "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "");
}

class NcclTests final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "nccl-tests.txt"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<LoneCollectives>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& all = report.get<LoneCollectives>();
    write_head(report, all, out);
    for (const LoneCollective& each : all) {
      const bool adds = each.kind == CollectiveKind::all_reduce || each.kind == CollectiveKind::reduce_scatter;
      const int root = each.kind == CollectiveKind::broadcast ? 0 : -1;
      fmt::print(out, " {:12.0f}{:14.0f}{:>10}{:>8}{:8}{:12.2f}{:9.2f}{:9.2f}{:>8}\n", each.bytes, count_of(each), "float",
                 adds ? "sum" : "none", root, each.simulated_s * 1e6, each.algbw_bytes_per_s / 1e9, each.busbw_bytes_per_s / 1e9, 0);
    }
  }
};

const ReporterRegistry::Registration<NcclTests> nccl_tests_registration("nccl-tests");

}  // namespace
}  // namespace rehearse::sim
