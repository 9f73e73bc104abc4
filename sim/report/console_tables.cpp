#include "sim/report/console_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "config/quantity.hpp"

namespace rehearse::sim {
namespace {

constexpr double giga_tokens = 1e9;
constexpr double gib_of_table = 1024.0 * 1024.0 * 1024.0;

// More than the rounding of sums over a step: 1e-9 of it.
bool worth_showing(double seconds, double step_s) { return seconds > 1e-9 * step_s; }

bool occurs(const StepResult& result, std::size_t phase) {
  const auto shows = [&](const RankResult& rank) { return worth_showing(rank.phases.seconds[phase], result.step_s); };
  return std::any_of(result.ranks.begin(), result.ranks.end(), shows);
}

std::vector<std::size_t> phases_of(const StepResult& result) {
  std::vector<std::size_t> phases;
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (occurs(result, i)) phases.push_back(i);
  }
  return phases;
}

struct Stage {
  int ranks = 0;
  PhaseTimes summed;  // over its ranks
};

std::map<int, Stage> stages_of(const StepResult& result) {
  std::map<int, Stage> stages;
  for (const RankResult& rank : result.ranks) {
    Stage& stage = stages[rank.stage];
    stage.ranks += rank.ranks;
    for (std::size_t i = 0; i < phase_count; ++i) stage.summed.seconds[i] += rank.ranks * rank.phases.seconds[i];
  }
  return stages;
}

constexpr std::size_t calls_column = 5, longest_column = 7;  // of the table of collectives

// Without the calls.
std::vector<std::string> collective_row(const CollectiveResult& collective) {
  return {collective.name,
          collective.group,
          with_protocol(collective.algorithm, collective.protocol),
          fmt::format("{}", collective.ranks),
          config::human_quantity(collective.bytes, config::Dimension::bytes),
          "",
          config::human_quantity(collective.seconds, config::Dimension::time),
          collective.longest_s > collective.seconds ? config::human_quantity(collective.longest_s, config::Dimension::time) : "",
          fmt::format("{:.1f}", collective.algbw_bytes_per_s / giga_tokens),
          fmt::format("{:.1f}", collective.busbw_bytes_per_s / giga_tokens)};
}

// With a sign; what rounds to nothing is +0, never -0.
std::string signed_text(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return fmt::format("{:+.{}f}", std::round(value * scale) / scale + 0.0, decimals);
}

std::string relative(double from, double to) { return from > 0 ? signed_text(100 * (to / from - 1), 1) + " %" : ""; }

std::vector<std::string> difference_row(std::string_view name, double analytic_s, double simulated_s, std::string critical,
                                        const Milliseconds& ms, std::string_view reason) {
  return {
      std::string(name),   ms(analytic_s),     ms(simulated_s), ms.difference(simulated_s - analytic_s), relative(analytic_s, simulated_s),
      std::move(critical), std::string(reason)};
}

}  // namespace

std::string Milliseconds::operator()(double seconds) const { return fmt::format("{:.{}f}", 1e3 * seconds, decimals_); }
std::string Milliseconds::difference(double seconds) const { return signed_text(1e3 * seconds, decimals_); }

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

Table phase_table(const StepResult& result) {
  const Milliseconds ms(result.step_s);
  Table table{.columns = {{"phase", Align::left}, {"ms"}, {"share"}}};
  for (const std::size_t i : phases_of(result)) {
    const double seconds = result.mean.seconds[i];
    table.rows.push_back({std::string(name_of(static_cast<Phase>(i))), ms(seconds), percent(seconds / result.step_s)});
  }
  table.rows.push_back({"step", ms(result.step_s), percent(result.mean.total() / result.step_s)});
  return table;
}

std::string experts_line(const StepResult& result) {
  if (!result.experts) return "";
  const ExpertLoadResult& experts = *result.experts;
  std::vector<std::string> parts;
  if (const double hot = experts.mean_tokens > 0 ? experts.tokens / experts.mean_tokens : 1; hot > 1 + 1e-9) {
    const std::string step = result.step_seconds.size() > 1 ? fmt::format(", step {}", experts.step) : "";
    parts.push_back(fmt::format("rank {} gets {:.2f} times the mean in layer {}, micro-batch {}{}", experts.rank, hot, experts.layer,
                                experts.microbatch, step));
  }
  if (experts.dropped_share > 1e-9) parts.push_back(fmt::format("{:.1f} % of tokens dropped", 100 * experts.dropped_share));
  int least = 0, most = 0;
  for (const int chunks : experts.chunks) {
    if (chunks > 0) least = least == 0 ? chunks : std::min(least, chunks);
    most = std::max(most, chunks);
  }
  if (most > 1) parts.push_back(least == most ? fmt::format("{} chunks", most) : fmt::format("{} to {} chunks", least, most));
  return parts.empty() ? "" : fmt::format("experts: {}", fmt::join(parts, "; "));
}

std::string steps_line(const StepResult& result) {
  const std::vector<double>& steps = result.step_seconds;
  if (steps.size() < 2) return "";
  constexpr std::size_t most = 10;
  const Milliseconds ms(result.step_s);
  std::vector<std::string> times;
  for (std::size_t i = 0; i < std::min(most, steps.size()); ++i) times.push_back(ms(steps[i]));
  if (steps.size() > most) times.emplace_back("...");
  const auto [shortest, longest] = std::ranges::minmax(steps);
  const std::string range = fmt::format("{} to {} ms", ms(shortest), ms(longest));
  return fmt::format("{} steps: {} ms{}", steps.size(), fmt::join(times, ", "), ms(shortest) == ms(longest) ? "" : "; " + range);
}

// By layer, or where several steps are simulated by step.
Table drop_table(const StepResult& result) {
  Table table;
  if (!result.experts || result.experts->dropped_share <= 1e-9) return table;
  const bool by_step = result.experts->layers.back().step > 0;
  std::map<int, std::pair<double, double>> rows;
  for (const ExpertLayerLoad& load : result.experts->layers) {
    auto& [routed, dropped] = rows[by_step ? load.step : load.layer];
    routed += load.routed;
    dropped += load.dropped;
  }
  table.columns = {{by_step ? "step" : "layer"}, {"tokens routed"}, {"dropped"}, {"share"}};
  for (const auto& [index, row] : rows) {
    const auto& [routed, dropped] = row;
    table.rows.push_back(
        {fmt::format("{}", index), fmt::format("{:.0f}", routed), fmt::format("{:.0f}", dropped), percent(dropped / routed)});
  }
  return table;
}

Table stage_table(const StepResult& result) {
  const Milliseconds ms(result.step_s);
  const std::vector<std::size_t> phases = phases_of(result);
  Table table{.columns = {{"stage"}, {"ranks"}}};
  for (const std::size_t i : phases) table.columns.push_back({std::string(name_of(static_cast<Phase>(i)))});
  for (const auto& [index, stage] : stages_of(result)) {
    std::vector<std::string> row{fmt::format("{}", index), fmt::format("{}", stage.ranks)};
    for (const std::size_t i : phases) row.push_back(ms(stage.summed.seconds[i] / stage.ranks));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table collective_table(const StepResult& result) {
  Table table{.columns = {{"collective", Align::left},
                          {"group", Align::left},
                          {"algorithm", Align::left},
                          {"ranks"},
                          {"size"},
                          {"calls"},
                          {"time"},
                          {"longest"},
                          {"algbw GB/s"},
                          {"busbw GB/s"}}};
  // Calls that read alike are one row: the first and the last bucket, say, may differ by a norm.
  std::vector<decltype(CollectiveResult::calls)> calls;
  for (const CollectiveResult& collective : result.collectives) {
    std::vector<std::string> row = collective_row(collective);
    const auto same = std::ranges::find(table.rows, row);
    const auto at = static_cast<std::size_t>(same - table.rows.begin());
    if (same == table.rows.end()) {
      table.rows.push_back(std::move(row));
      calls.push_back(0);
    }
    calls[at] += collective.calls;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) table.rows[i][calls_column] = fmt::format("{}", calls[i]);
  if (std::ranges::all_of(table.rows, [](const auto& row) { return row[longest_column].empty(); })) {
    table.columns.erase(table.columns.begin() + longest_column);
    for (auto& row : table.rows) row.erase(row.begin() + longest_column);
  }
  return table;
}

Table comparison_table(const Comparison& comparison) {
  const Milliseconds ms(comparison.simulated.step_s);
  Table table{.columns = {{"phase", Align::left},
                          {"analytic ms"},
                          {"simulated ms"},
                          {"difference ms"},
                          {""},
                          {"critical path ms"},
                          {"reason", Align::left}}};
  for (const PhaseDifference& phase : comparison.phases) {
    if (!worth_showing(std::max(phase.analytic_s, phase.simulated_s), comparison.simulated.step_s)) continue;
    table.rows.push_back(difference_row(name_of(phase.phase), phase.analytic_s, phase.simulated_s, "", ms, phase.reason));
  }
  table.rows.push_back(
      difference_row("step", comparison.analytic.step_s, comparison.simulated.step_s, ms(comparison.critical.step_s), ms, ""));
  return table;
}

Table explanation_table(const Explanation& explanation) {
  const Milliseconds ms(explanation.now.step_s);
  const RankMemory* fullest = explanation.now.memory.fullest();
  const double peak = fullest != nullptr ? fullest->needed_bytes() : 0;
  Table table{.columns = {{"switch", Align::left},
                          {"from", Align::left},
                          {"to", Align::left},
                          {"step ms"},
                          {"change ms"},
                          {""},
                          {"peak GiB"},
                          {"change"},
                          {"fits", Align::left}}};
  for (const FeatureSwitch& s : explanation.switches) {
    table.rows.push_back({s.feature, s.from, s.to, ms(s.step_s), ms.difference(s.step_s - explanation.now.step_s),
                          fmt::format("{:+.1f} %", 100 * (s.step_s / explanation.now.step_s - 1)),
                          fmt::format("{:.2f}", s.peak_bytes / gib_of_table), fmt::format("{:+.2f}", (s.peak_bytes - peak) / gib_of_table),
                          s.fits ? "yes" : "no"});
  }
  return table;
}

Table effect_table(const std::vector<FeatureEffect>& effects, double step_s) {
  const Milliseconds ms(step_s);
  Table table{.columns = {{"feature", Align::left},
                          {"is", Align::left},
                          {"instead of", Align::left},
                          {"formula ms"},
                          {"timeline ms"},
                          {"formula GiB"},
                          {"timeline GiB"}}};
  for (const FeatureEffect& e : effects) {
    table.rows.push_back({e.feature, e.value, e.without, ms.difference(e.analytic_s), ms.difference(e.simulated_s),
                          fmt::format("{:+.2f}", e.analytic_bytes / gib_of_table),
                          fmt::format("{:+.2f}", e.simulated_bytes / gib_of_table)});
  }
  return table;
}

}  // namespace rehearse::sim
