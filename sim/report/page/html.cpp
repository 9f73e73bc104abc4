#include "sim/report/page/html.hpp"

#include <fmt/ranges.h>

#include <cmath>

#include "config/quantity.hpp"
#include "sim/report/json_text.hpp"

namespace rehearse::sim::page {
namespace {

constexpr std::size_t sortable_rows = 5;

std::string valid_utf8(std::string_view text) { return nlohmann::json::parse(json_text(text)).get<std::string>(); }

std::string entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    default:
      break;
  }
  const bool control = static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t';
  return control ? "\xEF\xBF\xBD" : std::string(1, c);
}

std::string plain(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return std::abs(value) >= 1e4 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// To tell apart what is nearly alike: a tenth of a millisecond at least.
std::string milliseconds(double seconds) {
  constexpr double long_s = 10;
  if (std::abs(seconds) >= long_s) return fmt::format("{:.4f} s", seconds);
  const std::string text = fmt::format("{:.{}f} ms", 1e3 * seconds, std::abs(seconds) >= 1 ? 1 : 3);
  return text == "-0.000 ms" ? "0.000 ms" : text;
}

std::string percent(double share) {
  const std::string text = fmt::format("{:.2f} %", 100 * share);
  return text == "-0.00 %" ? "0.00 %" : text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) out += entity(c);
  return out;
}

std::string in_words(double value, Unit unit) {
  switch (unit) {
    case Unit::plain:
      return plain(value);
    case Unit::count:
      return fmt::format("{:.0f}", value);
    case Unit::milliseconds:
      return milliseconds(value);
    case Unit::time:
      return config::human_quantity(value, config::Dimension::time);
    case Unit::nanoseconds:
      return config::human_quantity(value * 1e-9, config::Dimension::time);
    case Unit::bytes:
      return config::human_quantity(value, config::Dimension::bytes);
    case Unit::rate:
      return fmt::format("{:.1f} TFLOP/s", value * 1e-12);
    case Unit::gigabytes_per_s:
      return fmt::format("{:.1f} GB/s", value * 1e-9);
    case Unit::percent:
      return percent(value);
    case Unit::hourly:
      return fmt::format("{:.4g} /h", value * 3600);
    case Unit::points:
      return fmt::format("{:+.2f}", value);
  }
  return "";
}

std::string number(const Json& result, const std::string& pointer, Unit unit) {
  const Json::json_pointer at(pointer);
  if (!result.contains(at) || !result.at(at).is_number()) return "-";
  const Json& value = result.at(at);
  return fmt::format(R"(<data value="{}" data-at="{}">{}</data>)", value.dump(), escaped(pointer), in_words(value.get<double>(), unit));
}

std::string worked_out(double value, Unit unit, std::string_view from) {
  const std::string how = from.empty() ? "" : fmt::format(" data-from=\"{}\"", escaped(from));
  return fmt::format(R"(<data value="{}"{}>{}</data>)", value, how, in_words(value, unit));
}

std::string pointer_part(std::string_view name) {
  std::string part;
  for (const char c : name) part += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return part;
}

std::string table(std::string_view caption, const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows) {
  std::string html = fmt::format("<table{}><caption>{}</caption><thead><tr>", rows.size() >= sortable_rows ? R"( class="sortable")" : "",
                                 escaped(caption));
  for (const Column& column : columns) {
    html += fmt::format(R"(<th scope="col"{}>{}</th>)", column.text ? R"( class="text")" : "", escaped(column.title));
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += fmt::format("<td{}>{}</td>", columns[i].text ? R"( class="text")" : "", row[i]);
    html += "</tr>\n";
  }
  return frame(caption, html + "</tbody></table>");
}

std::string fact(std::string_view what, std::string_view value) { return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", what, value); }

std::string legend(const std::vector<Mark>& marks) {
  std::string html = R"(<ul class="legend">)";
  for (const Mark& mark : marks) html += fmt::format(R"(<li><span class="key {}"></span>{}</li>)", mark.css, escaped(mark.name));
  return html + "</ul>\n";
}

std::string frame(std::string_view label, std::string_view content) {
  return fmt::format("<div class=\"frame\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">\n{}\n</div>\n", escaped(label), content);
}

}  // namespace rehearse::sim::page
