// devices.csv, rounds.csv, methods.csv; tuned-job.yaml and tuned-shares.csv.
#include <ostream>

#include "sim/federated/energy.hpp"
#include "sim/federated/reporters/text.hpp"
#include "sim/federated/tune.hpp"
#include "sim/report/csv.hpp"
#include "sim/report/reporter.hpp"

namespace rehearse::federated {
namespace {

using sim::csv_cell;
using sim::csv_row;
using sim::Report;

constexpr const char* shares_file = "tuned-shares.csv";

class DevicesCsv final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "devices.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<RoundSection>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& section = report.get<RoundSection>();
    const RoundResult& round = shown_round(section);
    out << "name,cut,leakage,limit,leakage_measure,uplink_share,downlink_share,server_share,latency_s,blame,bytes_up,bytes_down,end_s,fate,"
           "joules";
    for (const PhaseNames& phase : phase_names) out << ',' << phase.key << "_s";
    out << '\n';
    for (std::size_t n = 0; n < section.plan.cuts.size(); ++n) write_device(section, round, n, out);
  }

 private:
  static void write_device(const RoundSection& section, const RoundResult& round, std::size_t n, std::ostream& out) {
    const Job& job = *section.job;
    const Plan& plan = section.plan;
    const RoundLoad load = load_of(job, job.devices[n], plan.cuts[n]);
    const DeviceRound device = round.devices.empty() ? DeviceRound{} : round.devices[n];
    const auto spent = round.devices.empty() ? std::nullopt : joules(job, plan, n, device);
    out << csv_cell(job.device_name(n)) << ',' << csv_cell(job.cuts[plan.cuts[n]].name) << ',' << csv_cell(job.leakage[plan.cuts[n]]) << ','
        << csv_cell(job.devices[n].leakage_limit) << ',' << job.settings.leakage.measure << ',' << csv_cell(plan.share[n].uplink) << ','
        << csv_cell(plan.share[n].downlink) << ',' << csv_cell(plan.share[n].server) << ',' << csv_cell(plan.latency_s[n]) << ','
        << (plan.blame.empty() ? "" : csv_cell(plan.blame[n])) << ',' << csv_cell(load.smashed_up_bytes + load.model_bytes) << ','
        << csv_cell(load.smashed_down_bytes + load.model_bytes) << ',' << csv_cell(device.end_s) << ','
        << (round.devices.empty() ? "" : name_of(device.fate)) << ',' << (spent ? csv_cell(*spent) : "");
    for (const double seconds : device.phases.seconds) out << ',' << csv_cell(seconds);
    out << '\n';
  }
};
const sim::ReporterRegistry::Registration<DevicesCsv> devices_csv_registration("federated-devices");

class RoundsCsv final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "rounds.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<RunSection>(); }
  void write(const Report& report, std::ostream& out) const override {
    out << "round,begins_s,round_s,negotiation_s,repair_s,selected,finished,dropped,late,worked_device_s,wasted_device_s,lost\n";
    int number = 0;
    for (const RoundRow& row : report.get<RunSection>().history.rounds) {
      csv_row(out, ++number, row.begins_s, row.round_s, row.negotiation_s, row.repair_s, static_cast<int>(row.selected),
              static_cast<int>(row.finished), static_cast<int>(row.dropped), static_cast<int>(row.late), row.worked_s, row.wasted_s,
              row.lost ? "yes" : "no");
    }
  }
};
const sim::ReporterRegistry::Registration<RoundsCsv> rounds_csv_registration("federated-rounds");

class MethodsCsv final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "methods.csv"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<MethodRows>(); }
  void write(const Report& report, std::ostream& out) const override {
    out << "method,cuts,shares,formula_s,simulated_s,any_schedule_s,least_s,most_s,note\n";
    const auto cell = [](const std::optional<double>& value) { return value ? csv_cell(*value) : std::string(); };
    for (const MethodRow& row : report.get<MethodRows>()) {
      const auto known = [&](double seconds) { return row.formula_s > 0 ? cell(seconds) : std::string(); };
      csv_row(out, row.method, row.cuts, row.shares, known(row.formula_s), cell(row.simulated_s), known(row.any_schedule_s),
              cell(row.least_s), cell(row.most_s), row.note);
    }
  }
};
const sim::ReporterRegistry::Registration<MethodsCsv> methods_csv_registration("federated-methods");

class TunedJob final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "tuned-job.yaml"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<TuneSection>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& section = report.get<RoundSection>();
    out << tuned_job_yaml(*section.job, section.plan, shares_file);
  }
};
const sim::ReporterRegistry::Registration<TunedJob> tuned_job_registration("federated-tuned-job");

class TunedShares final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return shares_file; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<TuneSection>(); }
  void write(const Report& report, std::ostream& out) const override {
    const auto& section = report.get<RoundSection>();
    out << shares_csv(*section.job, section.plan);
  }
};
const sim::ReporterRegistry::Registration<TunedShares> tuned_shares_registration("federated-tuned-shares");

}  // namespace
}  // namespace rehearse::federated
