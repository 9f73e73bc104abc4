// result.json of split-federated jobs (docs/federated.md, "Output").
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/federated/energy.hpp"
#include "sim/federated/reporters/text.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::federated {
namespace {

using Json = nlohmann::ordered_json;

Json links_json(const LinkShares& of) { return {{"uplink", of.uplink}, {"downlink", of.downlink}, {"server", of.server}}; }

Json phases_json(const Phases& phases) {
  Json json;
  for (std::size_t i = 0; i < phase_count; ++i) json[std::string(phase_names[i].key)] = phases.seconds[i];
  return json;
}

Json device_json(const RoundSection& section, std::size_t n) {
  const Job& job = *section.job;
  const Plan& plan = section.plan;
  const RoundLoad load = load_of(job, job.devices[n], plan.cuts[n]);
  Json json{{"name", job.device_name(n)},
            {"cut", job.cuts[plan.cuts[n]].name},
            {"shares", links_json(plan.share[n])},
            {"latency_s", plan.latency_s[n]},
            {"slack_s", plan.round_s - plan.latency_s[n]},
            {"leakage", job.leakage[plan.cuts[n]]},
            {"limit", job.devices[n].leakage_limit},
            {"leakage_measure", job.settings.leakage.measure},
            {"bytes_up", load.smashed_up_bytes + load.model_bytes},
            {"bytes_down", load.smashed_down_bytes + load.model_bytes}};
  if (!plan.blame.empty()) json["blame"] = plan.blame[n];
  const RoundResult& round = shown_round(section);
  if (round.devices.empty()) return json;
  const DeviceRound& device = round.devices[n];
  json["end_s"] = device.end_s;
  json["fate"] = name_of(device.fate);
  json["phases_s"] = phases_json(device.phases);
  if (const auto spent = joules(job, plan, n, device)) json["joules"] = *spent;
  return json;
}

Json resources_json(const RoundSection& section) {
  Json json;
  const double round_s = shown_round(section).round_s;
  for (const NamedUse& use : uses_of(section)) {
    json[use.name] = {{"busy_share", use.use.busy_s / round_s},
                      {"reserved_idle_share", use.reserved ? std::max(0.0, use.use.reserved_s - use.use.busy_s) / round_s : 0.0},
                      {"seconds_per_percent", use.seconds_per_percent}};
  }
  return json;
}

Json round_json(const RoundSection& section) {
  const Plan& plan = section.plan;
  const RoundResult& shown = shown_round(section);
  const double aggregation_s = shown.aggregation_s;
  const auto rounds = section.job->settings.rounds;
  Json json{{"round_s", shown.round_s},
            {"rounds", rounds},
            {"training_s", static_cast<double>(rounds) * shown.round_s},
            {"latest_s", plan.round_s},
            {"sum_s", plan.sum_s},
            {"aggregation_s", aggregation_s},
            {"bound_s", plan.bound_s},
            {"any_schedule_s", plan.any_schedule_s + aggregation_s},
            {"proven", plan.proven},
            {"gap", plan.gap()},
            {"prices", links_json(plan.prices)},
            {"seconds_per_percent", links_json(plan.seconds_per_percent)},
            {"leakage_measure", leakage_text(*section.job)},
            {"convergence", not_simulated}};
  if (section.formula) json["formula"] = {{"round_s", section.formula->round_s}, {"closed_form", has_closed_form(*section.job)}};
  if (section.simulated) {
    json["simulated"] = {{"round_s", section.simulated->result.round_s},
                         {"devices", section.simulated->result.simulated},
                         {"queue_s", section.simulated->queue_s},
                         {"lost", section.simulated->lost}};
  }
  if (!section.reasons.empty()) json["reasons"] = section.reasons;
  json["resources"] = resources_json(section);
  json["devices"] = Json::array();
  for (std::size_t n = 0; n < plan.cuts.size(); ++n) json["devices"].push_back(device_json(section, n));
  return json;
}

Json methods_json(const MethodRows& rows) {
  Json json = Json::array();
  for (const MethodRow& row : rows) {
    Json one{{"method", row.method}, {"cuts", row.cuts}, {"shares", row.shares}};
    if (row.formula_s > 0) one["formula_s"] = row.formula_s;
    if (row.simulated_s) one["simulated_s"] = *row.simulated_s;
    if (row.formula_s > 0) one["any_schedule_s"] = row.any_schedule_s;
    if (row.least_s) one["least_s"] = *row.least_s;
    if (row.most_s) one["most_s"] = *row.most_s;
    if (!row.note.empty()) one["note"] = row.note;
    json.push_back(one);
  }
  return json;
}

Json tuning_json(const RoundSection& section, const TuneSection& tuning) {
  Json json{{"exact", tuning.exact}, {"solves", section.plan.solves}, {"nodes", section.plan.nodes}};
  if (tuning.by_weighted) {
    json["by_weighted"] = {{"before_s", tuning.by_weighted->before_s},
                           {"after_s", tuning.by_weighted->after_s},
                           {"tried", tuning.by_weighted->tried},
                           {"taken", tuning.by_weighted->taken}};
  }
  if (tuning.decentral) {
    const TuneSection::Decentral& decentral = *tuning.decentral;
    json["decentral"] = {{"latest_s", decentral.negotiation.round_s},
                         {"rounds", decentral.negotiation.rounds},
                         {"bytes_up", decentral.bytes_up},
                         {"bytes_down", decentral.bytes_down},
                         {"seconds", decentral.seconds},
                         {"fixed_point", decentral.negotiation.fixed_point}};
  }
  return json;
}

Json effects_json(const Effects& effects) {
  Json json = Json::array();
  for (const Effect& effect : effects) {
    Json one{{"key", effect.key}, {"value", effect.value}};
    if (effect.refused.empty()) {
      one["formula_s"] = effect.formula_s;
      one["simulated_s"] = effect.simulated_s;
    } else {
      one["refused"] = effect.refused;
    }
    json.push_back(one);
  }
  return json;
}

Json run_json(const RunHistory& history) {
  Json json{{"training_s", history.training_s},
            {"rounds_done", history.rounds.size()},
            {"useful_share", history.useful_share()},
            {"server_failures", history.failures},
            {"convergence", not_simulated}};
  if (history.joules > 0) json["joules"] = history.joules;
  json["rounds"] = Json::array();
  for (const RoundRow& row : history.rounds) {
    json["rounds"].push_back({{"begins_s", row.begins_s},
                              {"round_s", row.round_s},
                              {"selected", row.selected},
                              {"finished", row.finished},
                              {"dropped", row.dropped},
                              {"late", row.late},
                              {"wasted_device_s", row.wasted_s},
                              {"lost", row.lost}});
  }
  return json;
}

class ResultJson final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "result.json"; }
  [[nodiscard]] bool applies(const sim::Report& report) const override { return report.has<RoundSection>() || report.has<RunSection>(); }
  void write(const sim::Report& report, std::ostream& out) const override {
    Json json = sim::head_json(report.job);
    if (const auto* section = report.find<RoundSection>()) json["federated"] = round_json(*section);
    if (const auto* run = report.find<RunSection>()) json["federated"] = run_json(run->history);
    if (const auto* rows = report.find<MethodRows>()) json["methods"] = methods_json(*rows);
    if (const auto* tuning = report.find<TuneSection>()) json["tuning"] = tuning_json(report.get<RoundSection>(), *tuning);
    if (const auto* effects = report.find<Effects>()) json["effects"] = effects_json(*effects);
    sim::print_json(json, out);
  }
};
const sim::ReporterRegistry::Registration<ResultJson> result_json_registration("federated-json");

}  // namespace
}  // namespace rehearse::federated
