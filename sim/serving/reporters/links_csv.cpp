// links.csv: what the caches handed over put on each link (docs/serving.md, "Outputs").
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class LinksCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "links.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const ServiceRecord* record = recorded(report);
    return record != nullptr && !record->links().empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    out << "part,from,to,bandwidth_bytes_per_s,hand_overs,bytes,busy,utilisation,at_once_at_most,worst_wait_s\n";
    const ServingRun& run = *report.get<ServingReport>().run;
    const double seconds = run.record->end_s() - run.requests.front().arrival_s;
    for (const auto& [index, use] : run.record->links()) {
      const TransferLink& link = run.links[index];
      csv_row(out, link.part, link.from, link.to, link.bytes_per_s, static_cast<int>(use.hand_overs), use.bytes, use.busy_s / seconds,
              use.bytes / seconds / link.bytes_per_s, use.most_at_once, use.worst_wait_s);
    }
  }
};

const ReporterRegistry::Registration<LinksCsv> links_csv_registration("serving-links-csv");

}  // namespace
}  // namespace rehearse::sim
