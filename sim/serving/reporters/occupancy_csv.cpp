// occupancy.csv: what instances hold over time (docs/serving.md, "Outputs").
#include <algorithm>

#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"
#include "sim/serving/serving_report.hpp"

namespace rehearse::sim {
namespace {

class OccupancyCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "occupancy.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return recorded(report) != nullptr; }
  void write(const Report& report, std::ostream& out) const override {
    out << "instance,from_s,to_s,pages,pages_at_most,kv_bytes,running,running_at_most,waiting,waiting_at_most,held,held_at_most\n";
    const ServiceRecord& record = *recorded(report);
    const std::vector<RecordedInstance> instances = instances_of(report.get<ServingReport>());
    for (std::size_t i = 0; i < instances.size(); ++i) write_series(instances[i], record.levels()[i], out);
  }

 private:
  static void write_series(const RecordedInstance& instance, const LevelSeries& series, std::ostream& out) {
    for (std::size_t row = 0; row < series.rows().size(); ++row) {
      const LevelSeries::Row& of = series.rows()[row];
      const double from_s = series.row_s() * static_cast<double>(row), to_s = std::min(series.end_s(), from_s + series.row_s());
      if (!(to_s > from_s)) continue;
      const auto mean = [&](Level level) { return of.area[static_cast<std::size_t>(level)] / (to_s - from_s); };
      const auto most = [&](Level level) { return of.most[static_cast<std::size_t>(level)]; };
      csv_row(out, instance.name, from_s, to_s, mean(Level::pages), most(Level::pages), mean(Level::pages) * instance.page_bytes,
              mean(Level::running), most(Level::running), mean(Level::waiting), most(Level::waiting), mean(Level::held), most(Level::held));
    }
  }
};

const ReporterRegistry::Registration<OccupancyCsv> occupancy_csv_registration("serving-occupancy-csv");

}  // namespace
}  // namespace rehearse::sim
