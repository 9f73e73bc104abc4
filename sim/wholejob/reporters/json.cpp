// result.json of `run` and `replay` (docs/output-formats.md).
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/wholejob/reasons.hpp"
#include "sim/wholejob/reporters/numbers.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

Json statistics_json(const Statistics& all) {
  return {{"mean", all.mean}, {"deviation", all.deviation}, {"low", all.low}, {"high", all.high}, {"p5", all.p5}, {"p50", all.p50},
          {"p95", all.p95}};
}

Json account_json(const Account& account) {
  Json json;
  for (std::size_t i = 0; i < cause_count; ++i) json[std::string(key_of(static_cast<Cause>(i)))] = account.ns[i];
  return json;
}

Json run_json(const RunResult& run) {
  Json levels;
  for (std::size_t i = 0; i < level_count; ++i) levels[std::string(fault_levels.of(static_cast<FaultLevel>(i)))] = run.failures[i];
  return {{"seed", run.seed},
          {"ettr", run.ettr()},
          {"finished", run.finished == 1},
          {"wall_ns", run.wall},
          {"account_ns", account_json(run.account)},
          {"steps", run.steps},
          {"lost_steps", run.lost_steps},
          {"saves", run.saves},
          {"failures", levels},
          {"not_felt", run.not_felt},
          {"slow", run.slow},
          {"waits", run.waits},
          {"resized", run.resized},
          {"refused", run.refused}};
}

Json plan_json(const WholeJobPlan& plan) {
  const CheckpointTimes& checkpoint = plan.checkpoint;
  return {{"step_s", plan.step_s},
          {"step_method", plan.step_method},
          {"interval_steps", plan.training.interval},
          {"optimum_interval_steps", optimum_interval_steps(plan.formula_input)},
          {"checkpoint_bytes", checkpoint.bytes},
          {"save_s", checkpoint.save_s},
          {"blocking_s", checkpoint.blocking_s},
          {"background_s", checkpoint.background_s},
          {"load_s", checkpoint.load_s},
          {"init_s", to_s(plan.init)},
          {"repair_s", plan.formula_input.repair_s},
          {"failures_per_day", plan.formula_input.failures_per_s * seconds_per_day}};
}

Json formula_json(const FormulaResult& formula) {
  return {{"ettr", formula.ettr},
          {"effective_s", formula.effective_s},
          {"interrupted_s", formula.interrupted_s},
          {"total_s", formula.total_s()},
          {"failures", formula.failures},
          {"mttf_s", formula.mttf_s ? Json(*formula.mttf_s) : Json(nullptr)}};
}

Json statistics_of_runs(const WholeJobReport& report) {
  Json json;
  for (const Quantity& quantity : quantities_of(report)) {
    const auto all = statistics_of(quantity, report.runs);
    json[std::string(quantity.key)] = all ? statistics_json(*all) : Json(nullptr);
  }
  return json;
}

Json sweep_json(const WholeJobReport& report) {
  Json points = Json::array();
  for (const SweepPoint& point : report.sweep) {
    points.push_back({{"value", point.value},
                      {"plan", plan_json(point.plan)},
                      {"formula", formula_json(point.formula)},
                      {"ettr", statistics_json(point.ettr)},
                      {"total_s", statistics_json(point.total_s)}});
  }
  return {{"key", report.sweep_key}, {"points", points}};
}

Json differences_json(const WholeJobReport& report) {
  Json json = Json::array();
  for (const EttrDifference& d : differences_of(report)) json.push_back({{"cause", d.cause}, {"points", d.points}, {"reason", d.reason}});
  return json;
}

Json struck_json(const StruckStep& step) {
  return {{"failure", step.failure},   {"at_ns", step.at},      {"what", step.what},           {"steps", step.steps},
          {"spent_ns", step.spent},    {"step_ns", step.all},   {"simulated_at_s", step.at_s}, {"simulated_step_s", step.step_s},
          {"detected", step.detected}, {"lost_s", step.lost_s}, {"folder", step.folder}};
}

Json whole_job_json(const WholeJobReport& report) {
  if (!report.sweep.empty()) return {{"sweep", sweep_json(report)}};
  Json runs = Json::array();
  for (const RunResult& run : report.runs) runs.push_back(run_json(run));
  Json json = {{"plan", plan_json(report.plan)},
               {"formula", formula_json(report.formula)},
               {"simulated", statistics_of_runs(report)},
               {"differences", differences_json(report)},
               {"runs", runs}};
  if (report.states.met > 0) json["states"] = {{"met", report.states.met}, {"simulated", report.states.worked_out}};
  for (const StruckStep& step : report.struck_steps) json["struck_steps"].push_back(struck_json(step));
  return json;
}

Json report_json(const Report& report) {
  Json json = head_json(report.job);
  json["whole_job"] = whole_job_json(report.get<WholeJobReport>());
  return json;
}

class WholeJobJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "result.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<WholeJobReport>(); }
  void write(const Report& report, std::ostream& out) const override { print_json(report_json(report), out); }
};

const ReporterRegistry::Registration<WholeJobJson> whole_job_json_registration("whole-job-json");

}  // namespace
}  // namespace rehearse::sim
