// memory.csv: what every simulated rank holds from when on, by use (docs/output-formats.md).
#include <cmath>
#include <cstdint>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/timeline.hpp"

namespace rehearse::sim {
namespace {

void write_header(std::ostream& out) {
  out << "rank,stage,at_s";
  for (std::size_t i = 0; i < memory_use_count; ++i) out << ',' << name_of(static_cast<MemoryUse>(i)) << "_bytes";
  out << ",total_bytes\n";
}

// Whole bytes: sums of tensors that come and go leave rounding behind.
void write_sample(const TimelineRank& rank, const MemorySample& sample, std::ostream& out) {
  out << csv_cell(rank.rank) << ',' << csv_cell(rank.stage) << ',' << csv_cell(sample.at_s);
  for (const double bytes : sample.held.bytes) out << ',' << std::llround(bytes);
  out << ',' << std::llround(sample.held.total()) << '\n';
}

class MemoryCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "memory.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* timeline = report.find<Timeline>();
    return timeline != nullptr && timeline->knows_memory;
  }
  void write(const Report& report, std::ostream& out) const override {
    write_header(out);
    const Timeline& timeline = report.get<Timeline>();
    for (std::uint32_t rank = 0; rank < timeline.ranks.size(); ++rank) {
      for (const MemorySample& sample : timeline.events->memory_of(rank)) write_sample(timeline.ranks[rank], sample, out);
    }
  }
};

const ReporterRegistry::Registration<MemoryCsv> memory_csv_registration("memory-csv");

}  // namespace
}  // namespace rehearse::sim
