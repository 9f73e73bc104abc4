// result.json of a search (docs/tuning.md). Numbers are the shortest text that reads back as the same double.
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/tune/report.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

Json goals_json(const TuneReport& report, const Candidate& candidate) {
  Json json;
  for (std::size_t i = 0; i < report.goals.size(); ++i)
    json[std::string(goals().of(report.goals[i]))] = GoalValues::shown(report.goals[i], candidate.goals[i]);
  return json;
}

void add_confirmation(const Confirmation& confirmed, Json& json) {
  if (!confirmed.refused.empty()) {
    json["simulation_refused"] = confirmed.refused;
    return;
  }
  json["simulated_step_s"] = confirmed.step_s;
  json["simulated_peak_bytes"] = confirmed.peak_bytes;
  json["simulated_needed_bytes"] = confirmed.needed_bytes;
  if (!confirmed.shortage.empty()) json["simulated_shortage"] = confirmed.shortage;
  if (confirmed.rank > 0) json["simulated_rank"] = confirmed.rank;
}

Json plan_json(const TuneReport& report, const TunedPlan& plan) {
  Json set = Json::array();
  for (const auto& [key, value] : plan.settings) set.push_back(key + "=" + value);
  Json json{{"plan", plan.text},
            {"set", set},
            {"goals", goals_json(report, plan.candidate)},
            {"step_s", plan.candidate.step_s},
            {"peak_bytes", plan.candidate.peak_bytes},
            {"needed_bytes", plan.candidate.needed_bytes}};
  if (plan.candidate.lacks_bytes > 0) json["lacks_bytes"] = plan.candidate.lacks_bytes;
  if (plan.interval_steps > 0) json["checkpoint_interval_steps"] = plan.interval_steps;
  if (plan.candidate.twins > 0) {
    json["twins"] = plan.candidate.twins;
    json["without_effect"] = plan.free_keys;
  }
  if (plan.confirmed) add_confirmation(*plan.confirmed, json);
  if (!plan.predicted) return json;
  json["held_back_by"] = plan.held_back;
  if (plan.fits) json["fits"] = {{"chance", plan.fits->chance}, {"basis", plan.fits->basis}};
  Json phases;
  for (std::size_t i = 0; i < phase_count; ++i) phases[std::string(key_of(static_cast<Phase>(i)))] = plan.predicted->mean.seconds[i];
  json["phases_s"] = phases;
  json["tokens_per_s"] = plan.predicted->tokens_per_s;
  json["mfu"] = plan.predicted->mfu;
  json["bubble_share"] = plan.predicted->bubble_share;
  return json;
}

Json plans_json(const TuneReport& report, const std::vector<TunedPlan>& plans) {
  Json json = Json::array();
  for (const TunedPlan& plan : plans) json.push_back(plan_json(report, plan));
  return json;
}

Json space_json(const TuneReport& report) {
  Json json = Json::object();
  for (const Axis& axis : report.axes) {
    Json values = Json::array();
    for (const Axis::Value& value : axis.values) values.push_back(value.text);
    json[axis.key] = values;
  }
  return json;
}

Json counts_json(const TuneReport& report) {
  Json cut = Json::object(), refused = Json::array();
  for (std::size_t i = 0; i < cut_count; ++i) cut[std::string(name_of(static_cast<Cut>(i)))] = report.cut[i];
  for (const RefusedPoints& rule : report.refused)
    refused.push_back({{"key", rule.key}, {"points", rule.points}, {"example", rule.example}});
  return {{"points", report.points},
          {"decided", report.decided},
          {"evaluated", report.evaluated},
          {"may_run_out", report.may_run_out},
          {"do_not_fit", report.unfit - report.may_run_out},
          {"left_out", cut},
          {"refused", refused}};
}

Json sensitivity_json(const TuneReport& report) {
  Json json = Json::object();
  for (const Sensitivity& key : report.sensitivity) {
    Json values = Json::object();
    for (const ValueOfKey& value : key.values)
      values[value.value] = value.goal ? Json(GoalValues::shown(report.goals[0], *value.goal)) : Json();
    json[key.key] = values;
  }
  return json;
}

// Rows and columns as arrays: goals[row][column].
Json map_json(const TuneReport& report) {
  if (!report.map) return {};
  Json goals = Json::array();
  for (const auto& row : report.map->goals) {
    Json& cells = goals.emplace_back(Json::array());
    for (const auto& goal : row) cells.push_back(goal ? Json(GoalValues::shown(report.goals[0], *goal)) : Json());
  }
  return {{"keys", {report.map->row_key, report.map->column_key}},
          {"rows", report.map->rows},
          {"columns", report.map->columns},
          {"goals", goals}};
}

class TuneJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "result.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<TuneReport>(); }
  void write(const Report& report, std::ostream& out) const override {
    const TuneReport& tune = report.get<TuneReport>();
    Json names = Json::array();
    for (const Goal goal : tune.goals) names.push_back(goals().of(goal));
    Json json = head_json(report.job);
    json["tune"] = {{"hash", tune.hash},
                    {"goal", names},
                    {"space", space_json(tune)},
                    {"exhaustive", tune.exhaustive},
                    {"counts", counts_json(tune)},
                    {"most_need", {{"factor", tune.most_need.factor}, {"basis", tune.most_need.basis}}},
                    {"best", plans_json(tune, tune.best)},
                    {"front", plans_json(tune, tune.front)},
                    {"nearest", tune.nearest ? plan_json(tune, *tune.nearest) : Json()},
                    {"sensitivity", sensitivity_json(tune)},
                    {"map", map_json(tune)},
                    {"order_changes", tune.order_changes}};
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<TuneJson> tune_json_registration("tune-json");

}  // namespace
}  // namespace rehearse::sim
