#include <fmt/ostream.h>

#include <algorithm>
#include <numeric>

#include "sim/federated/energy.hpp"
#include "sim/federated/reporters/text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"

namespace rehearse::federated {
namespace {

using sim::Align;
using sim::Table;

void print_head(const sim::JobSummary& job, std::ostream& out) {
  fmt::print(out, "{}: {} on {}; {}\n", job.name, job.model, job.layout, job.batch);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_round(const RoundSection& section, std::ostream& out) {
  const Plan& plan = section.plan;
  const double aggregation_s = shown_round(section).aggregation_s;
  out << '\n';
  const auto lost = [](const RoundResult& round) { return round.anybody_finished() ? "" : "  LOST: no device finished"; };
  if (section.formula) {
    fmt::print(out, "{:<42}{}{}\n", has_closed_form(*section.job) ? "round by formula" : "bound in place of a formula",
               seconds_text(section.formula->round_s), lost(*section.formula));
  }
  if (section.simulated) {
    fmt::print(out, "{:<42}{}{}\n", "round simulated", seconds_text(section.simulated->result.round_s),
               section.simulated->lost ? "  LOST: the server failed" : lost(section.simulated->result));
  }
  fmt::print(out, "no schedule of these cuts is faster than  {}\n", seconds_text(plan.any_schedule_s + aggregation_s));
  fmt::print(out, "{:<42}{}\n", "of it aggregation of the models", seconds_text(aggregation_s));
  if (!plan.tuned()) return;
  fmt::print(out, "{:<42}{}; with reserved shares no choice is below {} ({})\n", "cuts and shares",
             plan.proven ? "optimal, proven" : fmt::format("within {:.2g} % of the best", 100 * plan.gap()),
             seconds_text((section.job->settings.objective == Objective::sum ? 0 : aggregation_s) + plan.bound_s),
             section.job->settings.objective == Objective::sum ? "sum of latencies" : "round");
}

void print_uses(const RoundSection& section, std::ostream& out) {
  const RoundResult& round = shown_round(section);
  Table table{.columns = {{"resource", Align::left}, {"busy"}, {"reserved and idle"}, {"price"}, {"1 % more saves"}}};
  for (const NamedUse& use : uses_of(section)) {
    const double idle = std::max(0.0, use.use.reserved_s - use.use.busy_s);
    table.rows.push_back({use.name, percent(use.use.busy_s / round.round_s), use.reserved ? percent(idle / round.round_s) : "-",
                          use.price > 0 ? fmt::format("{:.3f}", use.price) : "-",
                          use.seconds_per_percent > 0 ? seconds_text(use.seconds_per_percent) : "-"});
  }
  out << '\n';
  table.print(out);
}

// The slowest first: those that were longest at work.
std::vector<std::size_t> slowest(const RoundResult& round, std::size_t count) {
  std::vector<std::size_t> order(round.devices.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t n) { return round.devices[n].end_s; });
  order.resize(std::min(order.size(), count));
  return order;
}

// Rounding errors of the sums are nothing.
std::string phase_text(double seconds, const RoundResult& round) { return seconds > 1e-9 * round.round_s ? seconds_text(seconds) : "-"; }

std::vector<std::string> device_row(const RoundSection& section, std::size_t n) {
  const DeviceRound& device = shown_round(section).devices[n];
  const std::uint16_t cut = section.plan.cuts[n];
  std::vector<std::string> row{section.job->device_name(n), section.job->cuts[cut].name, fmt::format("{:.3f}", section.job->leakage[cut])};
  for (const double seconds : device.phases.seconds) row.push_back(phase_text(seconds, shown_round(section)));
  row.push_back(section.plan.blame.empty() ? "-" : fmt::format("{:.3f}", section.plan.blame[n]));
  row.emplace_back(device.fate == Fate::finished ? "" : name_of(device.fate));
  return row;
}

std::vector<std::string> median_row(const RoundResult& round) {
  std::vector<std::string> row{"median", "", ""};
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    std::vector<double> all;
    for (const DeviceRound& device : round.devices) all.push_back(device.phases.seconds[phase]);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
    std::ranges::nth_element(all, middle);
    row.push_back(phase_text(*middle, round));
  }
  return row;
}

void print_devices(const RoundSection& section, std::ostream& out) {
  const RoundResult& round = shown_round(section);
  if (round.devices.empty()) return;
  constexpr std::size_t shown = 12;
  Table table{.columns = {{"device", Align::left}, {"cut", Align::left}, {"leakage"}}};
  for (const PhaseNames& phase : phase_names) table.columns.push_back({std::string(phase.name)});
  table.columns.push_back({"blame"});
  table.columns.push_back({"", Align::left});
  for (const std::size_t n : slowest(round, shown)) table.rows.push_back(device_row(section, n));
  if (round.devices.size() > shown) table.rows.push_back(median_row(round));
  out << '\n';
  if (round.devices.size() > shown) fmt::print(out, "The {} slowest of {} devices:\n", shown, round.devices.size());
  table.print(out);
  fmt::print(out, "leakage: {}\n", leakage_text(*section.job));
}

void print_energy(const RoundSection& section, std::ostream& out) {
  double joules_sum = 0;
  bool known = false;
  const RoundResult& round = shown_round(section);
  for (std::size_t n = 0; n < round.devices.size(); ++n) {
    const auto spent = joules(*section.job, section.plan, n, round.devices[n]);
    known |= spent.has_value();
    joules_sum += spent.value_or(0);
  }
  if (known) fmt::print(out, "energy of the devices: {:.4g} J a round\n", joules_sum);
}

void print_methods(const MethodRows& rows, std::ostream& out) {
  Table table{.columns = {{"method", Align::left},
                          {"cuts", Align::left},
                          {"shares", Align::left},
                          {"formula"},
                          {"simulated"},
                          {"no schedule below"},
                          {"", Align::left}}};
  for (const MethodRow& row : rows) {
    std::string note = row.note;
    if (row.least_s) note += fmt::format(", {} to {}", seconds_text(*row.least_s), seconds_text(*row.most_s));
    const bool possible = row.formula_s > 0;
    table.rows.push_back({row.method, row.cuts, row.shares, possible ? seconds_text(row.formula_s) : "-",
                          row.simulated_s ? seconds_text(*row.simulated_s) : "-", possible ? seconds_text(row.any_schedule_s) : "-", note});
  }
  out << '\n';
  table.print(out);
}

void print_tuning(const RoundSection& section, const TuneSection& tuning, std::ostream& out) {
  out << '\n';
  fmt::print(out, "deadlines solved: {}; choices enumerated: {}\n", section.plan.solves, section.plan.nodes);
  if (tuning.by_weighted) {
    fmt::print(out, "search by simulation of weighted media: {} -> {} ({} changes of {} tried; a search, not an optimum)\n",
               seconds_text(tuning.by_weighted->before_s), seconds_text(tuning.by_weighted->after_s), tuning.by_weighted->taken,
               tuning.by_weighted->tried);
  }
  if (!tuning.decentral) return;
  const TuneSection::Decentral& decentral = *tuning.decentral;
  fmt::print(out,
             "decentralised: {} without aggregation after {} rounds, {:.0f} bytes up and {:.0f} down per device, {} on the job's links{}\n",
             seconds_text(decentral.negotiation.round_s), decentral.negotiation.rounds, decentral.bytes_up, decentral.bytes_down,
             seconds_text(decentral.seconds),
             decentral.negotiation.fixed_point ? "; every device has its best cut" : "; cuts settled by trial, not proven");
}

void print_effects(const Effects& effects, double formula_s, double simulated_s, std::ostream& out) {
  Table table{.columns = {{"with", Align::left}, {"formula"}, {"simulated"}, {"change"}}};
  for (const Effect& effect : effects) {
    const std::string what = fmt::format("{}: {}", effect.key, effect.value);
    if (effect.refused.empty()) {
      table.rows.push_back({what, seconds_text(effect.formula_s), seconds_text(effect.simulated_s),
                            fmt::format("{:+.1f} %", 100 * (effect.simulated_s / simulated_s - 1))});
    } else {
      table.rows.push_back({what, "-", "-", "not possible"});
    }
  }
  fmt::print(out, "\nThe round with one choice changed (now {} by formula, {} simulated):\n", seconds_text(formula_s),
             seconds_text(simulated_s));
  table.print(out);
}

class Console final : public sim::Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const sim::Report& report) const override { return report.has<RoundSection>() || report.has<RunSection>(); }
  void write(const sim::Report& report, std::ostream& out) const override {
    print_head(report.job, out);
    if (const auto* section = report.find<RoundSection>()) write_round(report, *section, out);
    if (const auto* run = report.find<RunSection>()) write_run(*run, out);
    fmt::print(out, "\n{}\n", not_simulated);
  }

 private:
  static void write_round(const sim::Report& report, const RoundSection& section, std::ostream& out) {
    print_round(section, out);
    print_uses(section, out);
    print_devices(section, out);
    print_energy(section, out);
    for (const std::string& reason : section.reasons) fmt::print(out, "{}\n", reason);
    if (const auto* rows = report.find<MethodRows>()) print_methods(*rows, out);
    if (const auto* tuning = report.find<TuneSection>()) print_tuning(section, *tuning, out);
    if (const auto* effects = report.find<Effects>())
      print_effects(*effects, section.formula->round_s, section.simulated->result.round_s, out);
  }

  static void write_run(const RunSection& run, std::ostream& out) {
    const RunHistory& history = run.history;
    RoundRow sum;
    std::size_t lost = 0;
    for (const RoundRow& row : history.rounds) {
      sum.selected += row.selected;
      sum.finished += row.finished;
      sum.dropped += row.dropped;
      sum.late += row.late;
      sum.negotiation_s += row.negotiation_s;
      sum.repair_s += row.repair_s;
      lost += row.lost ? 1 : 0;
    }
    const double rounds = static_cast<double>(history.rounds.size());
    fmt::print(out, "\n{} rounds of {} that count in {}", history.rounds.size(), run.job->settings.rounds,
               seconds_text(history.training_s));
    fmt::print(out, " ({} a round)\n", seconds_text(history.training_s / rounds));
    fmt::print(out, "devices a round: {:.1f} selected, {:.1f} finished, {:.1f} left, {:.1f} late\n",
               static_cast<double>(sum.selected) / rounds, static_cast<double>(sum.finished) / rounds,
               static_cast<double>(sum.dropped) / rounds, static_cast<double>(sum.late) / rounds);
    if (sum.finished == 0) fmt::print(out, "no device finished in any round: nothing is trained\n");
    fmt::print(out, "useful share of the devices' work: {}\n", percent(history.useful_share()));
    if (history.failures > 0)
      fmt::print(out, "server failures: {}, {} of repair; {} rounds lost\n", history.failures, seconds_text(sum.repair_s), lost);
    if (sum.negotiation_s > 0) fmt::print(out, "negotiating cuts and shares anew: {}\n", seconds_text(sum.negotiation_s));
    if (history.joules > 0) fmt::print(out, "energy of the devices: {:.4g} J\n", history.joules);
    fmt::print(out, "seed {}\n", history.seed);
  }
};
const sim::ReporterRegistry::Registration<Console> console_registration("federated-console");

}  // namespace
}  // namespace rehearse::federated
