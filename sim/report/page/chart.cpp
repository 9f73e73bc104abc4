#include "sim/report/page/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/page/html.hpp"

namespace rehearse::sim::page {

std::string coordinate(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::vector<double> ticks(double from, double to, int about) {
  const double rough = (to - from) / about;
  const double magnitude = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * magnitude;
  for (const double nice : {5.0, 2.0, 1.0}) {
    if (nice * magnitude >= rough) step = nice * magnitude;
  }
  std::vector<double> values;
  for (double i = std::ceil(from / step); i * step <= to * (1 + 1e-12); ++i) values.push_back(i * step);
  return values;
}

std::string svg(std::string_view title, double height, std::string_view content, double scale) {
  const std::string told = scale > 0 ? fmt::format(" data-scale=\"{}\"", scale) : "";
  return frame(fmt::format("{}: chart", title), fmt::format("<svg viewBox=\"0 0 {:.0f} {}\" role=\"img\" aria-label=\"{}\"{}>\n{}</svg>",
                                                            chart_width, coordinate(height), escaped(title), told, content));
}

std::string axis_below(const Scale& x, double top, double bottom, const Words& words) {
  std::string out;
  for (const double value : ticks(x.from, x.to, 8)) {
    out += fmt::format("<path class=\"grid\" d=\"M{} {}V{}\"/>", coordinate(x(value)), coordinate(top), coordinate(bottom));
    out += label(x(value), bottom + 17, words(value), "middle");
  }
  return out + "\n";
}

std::string axis_of_time(const Scale& x, double top, double bottom) {
  struct TimeUnit {
    double up_to_s, seconds;
    const char* name;
  };
  constexpr TimeUnit units[] = {{1e-3, 1e-6, "us"}, {100, 1e-3, "ms"}, {7200, 1, "s"}, {172800, 3600, "h"}, {INFINITY, 86400, "days"}};
  const TimeUnit& unit = *std::ranges::find_if(units, [&](const TimeUnit& each) { return x.to - x.from <= each.up_to_s; });
  const Scale in_unit{x.from / unit.seconds, x.to / unit.seconds, x.left, x.right};
  return axis_below(in_unit, top, bottom, [&](double value) { return fmt::format("{:g} {}", value, unit.name); });
}

std::string axis_left(const Scale& y, double right, const Words& words) {
  std::string out;
  for (const double value : ticks(y.from, y.to, 5)) {
    out += fmt::format("<path class=\"grid\" d=\"M70 {}H{}\"/>", coordinate(y(value)), coordinate(right));
    out += label(64, y(value) + 4, words(value), "end");
  }
  return out + "\n";
}

std::string label(double x, double y, std::string_view text, std::string_view css) {
  const std::string of_class = css.empty() ? "" : fmt::format(" class=\"{}\"", css);
  return fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>", coordinate(x), coordinate(y), of_class, escaped(text));
}

std::string stacked_bars(std::string_view title, const std::vector<Bar>& bars, double most_s, const Words& words) {
  constexpr double row = 20;
  constexpr double thick = 15;
  const Scale x{0, most_s, 150, chart_width - 40};
  std::string out = axis_of_time(x, 0, row * static_cast<double>(bars.size()));
  double y = 2;
  for (const Bar& bar : bars) {
    out += label(144, y + 12, bar.name, "end");
    out += fmt::format("<g data-bar=\"{}\">", escaped(bar.name));
    double at = 0;
    for (const Piece& piece : bar.pieces) {
      if (piece.seconds <= 0) continue;
      out += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{}: {}</title></rect>", piece.css,
                         x(at), coordinate(y), x(at + piece.seconds) - x(at), coordinate(thick), escaped(piece.name),
                         escaped(words(piece.seconds)));
      at += piece.seconds;
    }
    out += "</g>\n";
    y += row;
  }
  return svg(title, row * static_cast<double>(bars.size()) + 22, out, x(1) - x(0));
}

std::string stairs(const std::vector<Point>& points, const Scale& x, const Scale& y) {
  constexpr double apart = 2.5;  // user units
  std::string path;
  double last_x = -1;
  double last_y = NAN;
  for (std::size_t i = 0; i < points.size();) {
    const double from = x(points[i].x);
    double highest = points[i].y;
    std::size_t next = i + 1;
    for (; next < points.size() && x(points[next].x) < from + apart; ++next) highest = std::max(highest, points[next].y);
    if (path.empty()) {
      path = fmt::format("M{} {}", coordinate(from), coordinate(y(highest)));
    } else if (coordinate(y(highest)) != coordinate(last_y)) {
      path += fmt::format("H{}V{}", coordinate(from), coordinate(y(highest)));
    }
    last_x = from;
    last_y = y(highest);
    i = next;
  }
  if (last_x >= 0) path += fmt::format("H{}", coordinate(x.right));
  return path;
}

}  // namespace rehearse::sim::page
