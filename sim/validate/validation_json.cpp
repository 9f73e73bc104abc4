#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/validate/validation_report.hpp"

namespace rehearse::sim {
namespace {

Json metrics_json(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [metric, value] : metrics) json[std::string(name_of(metric))] = value;
  return json;
}

Json errors_json(const Outcome& outcome, const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [metric, value] : metrics) {
    json[std::string(name_of(metric))] = 100 * relative_error(value, outcome.measured.at(metric));
  }
  return json;
}

Json optional_json(const std::optional<bool>& answer) { return answer ? Json(*answer) : Json(nullptr); }

Json case_json(const Outcome& outcome) {
  Json json{{"id", outcome.id},
            {"group", outcome.group},
            {"gpu", outcome.gpu},
            {"software", outcome.software},
            {"precision", outcome.precision},
            {"experts", outcome.experts},
            {"gpus", outcome.gpus},
            {"inferred", outcome.inferred},
            {"measured", metrics_json(outcome.measured)},
            {"predicted", metrics_json(outcome.predicted)},
            {"simulated", metrics_json(outcome.simulated)},
            {"error_pct", errors_json(outcome, outcome.predicted)},
            {"simulated_error_pct", errors_json(outcome, outcome.simulated)},
            {"ran", optional_json(outcome.ran)},
            {"said_to_fit", optional_json(outcome.said_to_fit)},
            {"counter", memory_counters().of(outcome.counter)},
            {"needed_share", outcome.ran ? Json(outcome.needed_share) : Json(nullptr)},
            {"failed", nullptr}};
  if (!outcome.failed.empty()) json["failed"] = outcome.failed;
  return json;
}

Json summary_json(const ErrorSummary& summary) {
  return {{"group", summary.group},
          {"metric", name_of(summary.metric)},
          {"method", summary.method},
          {"cases", summary.cases},
          {"number", summary.count},
          {"mean_abs_error_pct", 100 * summary.mean_abs},
          {"median_abs_error_pct", 100 * summary.median_abs},
          {"p90_abs_error_pct", 100 * summary.p90_abs},
          {"worst_error_pct", 100 * summary.worst},
          {"worst_id", summary.worst_id},
          {"bias_pct", 100 * summary.bias}};
}

Json verdict_json(const VerdictSummary& verdict) {
  return {{"group", verdict.group},
          {"ran", verdict.ran},
          {"ran_out", verdict.ran_out},
          {"false_alarms", verdict.false_alarms},
          {"missed", verdict.missed}};
}

}  // namespace

Json validation_json(const Validation& validation) {
  Json json{{"cases", Json::array()}, {"groups", Json::array()}, {"verdicts", Json::array()}};
  for (const Outcome& outcome : validation.outcomes) json["cases"].push_back(case_json(outcome));
  for (const ErrorSummary& summary : validation.summaries) json["groups"].push_back(summary_json(summary));
  for (const VerdictSummary& verdict : validation.verdicts) json["verdicts"].push_back(verdict_json(verdict));
  return json;
}

namespace {

class ValidationJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Validation>(); }
  void write(const Report& report, std::ostream& out) const override {
    Json json = validation_json(report.get<Validation>());
    if (const auto* changes = report.find<ValidationChanges>()) json["changes"] = {{"cases", changes->cases}, {"groups", changes->groups}};
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<ValidationJson> validation_json_registration("validation-json");

}  // namespace
}  // namespace rehearse::sim
