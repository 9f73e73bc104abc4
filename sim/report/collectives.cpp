// Collectives measured alone, as nccl-tests print them: a table, JSON and collectives.csv (docs/output-formats.md).
#include <fmt/ostream.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "config/quantity.hpp"
#include "sim/engine/lone_collective.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {
namespace {

using config::Dimension;
using config::human_quantity;

constexpr double giga = 1e9;

std::vector<std::string> row_of(const LoneCollective& result) {
  return {human_quantity(result.bytes, Dimension::bytes),         with_protocol(result.algorithm, result.protocol),
          human_quantity(result.formula_s, Dimension::time),      human_quantity(result.simulated_s, Dimension::time),
          fmt::format("{:.2f}", result.algbw_bytes_per_s / giga), fmt::format("{:.2f}", result.busbw_bytes_per_s / giga)};
}

class CollectiveConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<LoneCollectives>(); }
  void write(const Report& report, std::ostream& out) const override {
    fmt::print(out, "{} alone, {} GPUs of {}\n\n", name_of(report.get<LoneCollectives>().front().kind), report.job.gpus,
               report.job.cluster);
    Table table{.columns = {{"size"}, {"algorithm", Align::left}, {"formula"}, {"simulated"}, {"algbw GB/s"}, {"busbw GB/s"}}};
    for (const LoneCollective& result : report.get<LoneCollectives>()) table.rows.push_back(row_of(result));
    table.bold_header = report.colour;
    table.print(out);
  }
};

class CollectiveJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<LoneCollectives>(); }
  void write(const Report& report, std::ostream& out) const override {
    nlohmann::ordered_json json{{"format", 1}, {"cluster", report.job.cluster}, {"gpus", report.job.gpus}};
    for (const LoneCollective& result : report.get<LoneCollectives>()) {
      json["collectives"].push_back({{"collective", std::string(name_of(result.kind))},
                                     {"bytes", result.bytes},
                                     {"algorithm", result.algorithm},
                                     {"protocol", result.protocol},
                                     {"formula_s", result.formula_s},
                                     {"simulated_s", result.simulated_s},
                                     {"algbw_bytes_per_s", result.algbw_bytes_per_s},
                                     {"busbw_bytes_per_s", result.busbw_bytes_per_s}});
    }
    print_json(json, out);
  }
};

class CollectivesCsv final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "collectives.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<LoneCollectives>(); }
  void write(const Report& report, std::ostream& out) const override {
    out << "collective,gpus,bytes,algorithm,protocol,formula_s,simulated_s,algbw_bytes_per_s,busbw_bytes_per_s\n";
    for (const LoneCollective& each : report.get<LoneCollectives>()) {
      csv_row(out, name_of(each.kind), each.gpus, each.bytes, each.algorithm, each.protocol, each.formula_s, each.simulated_s,
              each.algbw_bytes_per_s, each.busbw_bytes_per_s);
    }
  }
};

const ReporterRegistry::Registration<CollectiveConsole> collective_console_registration("collective-console");
const ReporterRegistry::Registration<CollectiveJson> collective_json_registration("collective-json");
const ReporterRegistry::Registration<CollectivesCsv> collectives_csv_registration("collectives-csv");

}  // namespace
}  // namespace rehearse::sim
