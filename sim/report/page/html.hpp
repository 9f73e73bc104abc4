// Text of a page. Everything that comes from a user's file is escaped here; everything that is a number of result.json says which.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::sim::page {

using Json = nlohmann::ordered_json;

// What is not UTF-8 is replaced, what would be markup is written as entities; it may stand in an attribute in double quotes.
[[nodiscard]] std::string escaped(std::string_view text);

// How a number is written for people; hourly: of something per second, per hour.
enum class Unit { plain, count, milliseconds, time, nanoseconds, bytes, rate, gigabytes_per_s, percent, points, hourly };
[[nodiscard]] std::string in_words(double value, Unit unit);

// A number of result.json, in words; the element says where it stands there (data-at, a JSON pointer) and its value as it is there. What is
// null or no number is "-".
[[nodiscard]] std::string number(const Json& result, const std::string& pointer, Unit unit);

// A number of another file, or worked out from several; `from` says how, for whoever checks it: "mean /whole_job/runs/*/ettr".
[[nodiscard]] std::string worked_out(double value, Unit unit, std::string_view from = "");

// A pointer's part out of a name: "critical path" has no special characters, "a/b" has.
[[nodiscard]] std::string pointer_part(std::string_view name);

struct Column {
  std::string title;
  bool text = false;  // else numbers, to the right
};

// Cells are HTML. Tables of more than a few rows can be sorted and searched (with scripts).
[[nodiscard]] std::string table(std::string_view caption, const std::vector<Column>& columns,
                                const std::vector<std::vector<std::string>>& rows);

// One fact of a <dl class="facts">; both are HTML.
[[nodiscard]] std::string fact(std::string_view what, std::string_view value);

// Names and colours, for a chart: class is that of the mark ("phase-compute").
struct Mark {
  std::string css, name;
};
[[nodiscard]] std::string legend(const std::vector<Mark>& marks);

// What is wider than a phone is moved in a frame of its own, by keyboard too.
[[nodiscard]] std::string frame(std::string_view label, std::string_view content);

}  // namespace rehearse::sim::page
