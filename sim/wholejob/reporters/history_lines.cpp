// history.jsonl: one JSON object per line and event (docs/output-formats.md).
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/reporter.hpp"
#include "sim/wholejob/report.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

void add_fault(const Fault& fault, Json& json) {
  json["source"] = fault.label;
  json["component"] = components.of(fault.component);
  json["node"] = fault.node;
  json["nodes"] = fault.nodes;
  if (fault.kind == FaultKind::fail) {
    json["level"] = fault_levels.of(fault.level);
    return;
  }
  json["slowdown"] = fault.slowdown;
  if (fault.duration != never) json["duration_ns"] = fault.duration;
}

Json entry_json(const HistoryEntry& entry) {
  Json json = {{"at_ns", entry.at}, {"event", entry.event}};
  if (entry.fault) add_fault(*entry.fault, json);
  json["steps"] = entry.steps;
  if (entry.event == "failure") json["lost_steps"] = entry.lost_steps;
  if (entry.duration > 0) json["duration_ns"] = entry.duration;
  if (!entry.why.empty()) json["why"] = entry.why;
  if (entry.step > 0) json["step_ns"] = entry.step;
  return json;
}

class HistoryLines final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "history.jsonl"; }
  [[nodiscard]] bool applies(const Report& report) const override {
    const auto* whole = report.find<WholeJobReport>();
    return whole != nullptr && !whole->history.empty();
  }
  void write(const Report& report, std::ostream& out) const override {
    for (const HistoryEntry& entry : report.get<WholeJobReport>().history) {
      out << entry_json(entry).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    }
  }
};

const ReporterRegistry::Registration<HistoryLines> history_lines_registration("whole-job-history");

}  // namespace
}  // namespace rehearse::sim
