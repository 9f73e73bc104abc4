// Charts as SVG: drawn in user units, 1000 wide, as many high as they need.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::sim::page {

inline constexpr double chart_width = 1000;

// Values from .. to on pixels from .. to.
struct Scale {
  double from = 0, to = 1;
  double left = 0, right = chart_width;
  [[nodiscard]] double operator()(double value) const { return left + (value - from) / (to - from) * (right - left); }
};

[[nodiscard]] std::string coordinate(double value);  // one decimal at most

// Round values within a range, about so many.
[[nodiscard]] std::vector<double> ticks(double from, double to, int about);

// <svg> with a title for who cannot see it; `scale` (pixels for a unit of the values) is told to tests.
[[nodiscard]] std::string svg(std::string_view title, double height, std::string_view content, double scale = 0);

using Words = std::function<std::string(double)>;
// Lines and numbers of an axis; its labels stand below, or to the left.
[[nodiscard]] std::string axis_below(const Scale& x, double top, double bottom, const Words& words);
// The same of seconds, in the unit that suits their range: us, ms, s, h or days.
[[nodiscard]] std::string axis_of_time(const Scale& x, double top, double bottom);
[[nodiscard]] std::string axis_left(const Scale& y, double right, const Words& words);

[[nodiscard]] std::string label(double x, double y, std::string_view text, std::string_view css = "");

// A piece of a stacked bar.
struct Piece {
  std::string css;   // of the mark
  std::string name;  // shown when pointed at
  double seconds = 0;
};
struct Bar {
  std::string name;
  std::vector<Piece> pieces;
};
// Bars from left to right, one below the other; they all end at `most` or before.
[[nodiscard]] std::string stacked_bars(std::string_view title, const std::vector<Bar>& bars, double most_s, const Words& words);

struct Point {
  double x = 0, y = 0;
};
// The path of a value that stays as it is until it changes, with at most so many points: of those between two pixels the highest.
[[nodiscard]] std::string stairs(const std::vector<Point>& points, const Scale& x, const Scale& y);

}  // namespace rehearse::sim::page
