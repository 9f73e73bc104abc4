#include "sim/serving/reporters/days_text.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "config/quantity.hpp"
#include "sim/report/table.hpp"

namespace rehearse::sim {
namespace {

struct Line {
  std::string name;
  std::function<double(const ServiceDay&)> value;
  std::function<std::string(double)> text;
};

std::string share_text(double share) { return fmt::format("{:.3f} %", 100 * share); }
// A mean of counts is a fraction.
std::string count_text(double count) { return fmt::format("{:.{}f}", count, count == std::floor(count) ? 0 : 1); }
std::string rate_text(double rate) { return fmt::format("{:.4g}", rate); }
std::string duration_text(double seconds) { return config::human_quantity(seconds, config::Dimension::time); }

std::vector<Line> lines_of(const ServiceDays& days) {
  std::vector<Line> lines{
      {"requests/s within the promise", [](const ServiceDay& day) { return day.within_per_s; }, rate_text},
      {"requests within the promise", [](const ServiceDay& day) { return static_cast<double>(day.within) / std::max(1, day.requests); },
       share_text},
      {"minutes in which it is kept", [](const ServiceDay& day) { return day.minutes_kept; }, share_text},
      {"longest time below it", [](const ServiceDay& day) { return 60.0 * day.longest_below_min; }, duration_text},
      {"failures of instances", [](const ServiceDay& day) { return static_cast<double>(day.instance_failures); }, count_text},
      {"requests that began again", [](const ServiceDay& day) { return static_cast<double>(day.retried); }, count_text},
      {"requests lost", [](const ServiceDay& day) { return static_cast<double>(day.lost); }, count_text},
      {"tokens computed twice", [](const ServiceDay& day) { return day.recomputed_tokens; }, count_text},
      {"longest gap between tokens", [](const ServiceDay& day) { return day.longest_gap_s; }, duration_text}};
  for (std::size_t pool = 0; pool < days.pools.size(); ++pool)
    lines.push_back({fmt::format("{} up", days.pools[pool]), [pool](const ServiceDay& day) { return day.up[pool]; }, share_text});
  return lines;
}

}  // namespace

void print_days(const ServiceDays& days, bool colour, std::ostream& out) {
  const bool several = days.runs.size() > 1;
  const std::string seconds = config::human_quantity(days.seconds, config::Dimension::time);
  fmt::print(out, "\n{} of requests, {} of failures\n", seconds, several ? fmt::format("{} histories", days.runs.size()) : "one history");
  Table table{.columns = {{"", Align::left}, {"without failures"}, {several ? "with them, mean" : "with them"}}};
  if (several) {
    table.columns.push_back({"least"});
    table.columns.push_back({"most"});
  }
  table.bold_header = colour;
  const auto row = [&](const std::string& name, const std::string& healthy, const std::function<double(const ServiceDay&)>& value,
                       const auto& text) {
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (const ServiceDay& day : days.runs) {
      sum += value(day);
      least = std::min(least, value(day));
      most = std::max(most, value(day));
    }
    table.rows.push_back({name, healthy, text(sum / static_cast<double>(days.runs.size()))});
    if (!several) return;
    table.rows.back().push_back(text(least));
    table.rows.back().push_back(text(most));
  };
  row(
      "goodput availability", "", [&](const ServiceDay& day) { return days.availability(day); }, share_text);
  for (const Line& line : lines_of(days)) row(line.name, line.text(line.value(days.healthy)), line.value, line.text);
  table.print(out);
}

}  // namespace rehearse::sim
