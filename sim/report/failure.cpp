// A failure inside a step: on the console, and as result.json (docs/output-formats.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "config/quantity.hpp"
#include "sim/report/job_head.hpp"
#include "sim/report/json_text.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/table.hpp"

namespace rehearse::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_ranks_named = 8;  // on the console

std::string time_text(double seconds) { return config::human_quantity(seconds, config::Dimension::time); }

std::string ranks_text(const std::vector<int>& ranks) {
  const std::vector<int> first(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), most_ranks_named)));
  const std::string more = ranks.size() > most_ranks_named ? fmt::format(", ... ({} in all)", ranks.size()) : "";
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(first, ", "), more);
}

// The first operation that hangs on a rank.
std::string waits_for(const Aftermath& after, const RankAftermath& rank) {
  for (const HungOperation& hung : after.hung) {
    if (hung.rank == rank.rank) return fmt::format("{} ({}), since {}", hung.operation, hung.group, time_text(hung.since_s));
  }
  return "";
}

Table rank_table(const Aftermath& after) {
  Table table{.columns = {{"rank"}, {"stage"}, {"ranks"}, {"", Align::left}, {"last operation ends"}, {"first that hangs", Align::left}}};
  for (const RankAftermath& rank : after.ranks) {
    table.rows.push_back({std::to_string(rank.rank), std::to_string(rank.stage), std::to_string(rank.ranks), std::string(name_of(rank.end)),
                          time_text(rank.last_s), waits_for(after, rank)});
  }
  return table;
}

class FailureConsole final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return ""; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Aftermath>(); }
  void write(const Report& report, std::ostream& out) const override {
    const Aftermath& after = report.get<Aftermath>();
    print_job(report.job, out);
    out << '\n';
    for (const Aftermath::Failure& failure : after.failures)
      out << fmt::format("{}: {} {}\n", failure.what, ranks_text(failure.ranks), failure.ranks.size() == 1 ? "fails" : "fail");
    const bool nobody = std::ranges::all_of(after.ranks, [](const RankAftermath& rank) { return rank.end == RankAftermath::End::dead; });
    out << (nobody ? std::string("no rank is left that could notice\n") : "");
    if (!nobody)
      out << (after.detected
                  ? fmt::format("detected after {}: a communication has timed out; all of that is lost\n", time_text(after.detected_s))
                  : std::string("nothing in this step waits for what failed: the next step would\n"));
    out << fmt::format("{} of {} operations ended, {} {}\n\n", after.ended, after.operations, after.hung.size(),
                       after.hung.size() == 1 ? "communication hangs" : "communications hang");
    Table table = rank_table(after);
    table.bold_header = report.colour;
    table.print(out);
  }
};

Json failure_json(const Aftermath& after) {
  Json failures = Json::array(), hung = Json::array(), ranks = Json::array();
  for (const auto& failure : after.failures) failures.push_back({{"what", failure.what}, {"at_s", failure.at_s}, {"ranks", failure.ranks}});
  for (const HungOperation& op : after.hung) {
    hung.push_back({{"rank", op.rank}, {"operation", op.operation}, {"group", op.group}, {"since_s", op.since_s}});
  }
  for (const RankAftermath& rank : after.ranks) {
    ranks.push_back(
        {{"rank", rank.rank}, {"stage", rank.stage}, {"ranks", rank.ranks}, {"end", name_of(rank.end)}, {"last_s", rank.last_s}});
  }
  return {{"failures", failures},   {"detected_s", after.detected ? Json(after.detected_s) : Json(nullptr)},
          {"lost_s", after.lost_s}, {"operations", after.operations},
          {"ended", after.ended},   {"hung", hung},
          {"ranks", ranks}};
}

class FailureJson final : public Reporter {
 public:
  [[nodiscard]] std::string_view file_name() const override { return "result.json"; }
  [[nodiscard]] bool applies(const Report& report) const override { return report.has<Aftermath>(); }
  void write(const Report& report, std::ostream& out) const override {
    Json json = head_json(report.job);
    json["failure"] = failure_json(report.get<Aftermath>());
    print_json(json, out);
  }
};

const ReporterRegistry::Registration<FailureConsole> failure_console_registration("failure-console");
const ReporterRegistry::Registration<FailureJson> failure_json_registration("failure-json");

}  // namespace
}  // namespace rehearse::sim
