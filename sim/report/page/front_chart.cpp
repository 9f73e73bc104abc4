#include "sim/report/page/front_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/page/chart.hpp"

namespace rehearse::sim::page {
namespace {

constexpr double front_height = 300;

// All values, with room around them.
Scale scale_of(const std::vector<double>& values, double left, double right) {
  const auto [least, most] = std::ranges::minmax(values);
  const double room = most > least ? (most - least) / 20 : std::max(1e-12, most / 20);
  return {least - room, most + room, left, right};
}

// Round numbers on an axis are round in the unit that they are written in.
struct AxisUnit {
  double size = 1;
  const char* name = "";
  [[nodiscard]] Scale of(const Scale& scale) const { return {scale.from / size, scale.to / size, scale.left, scale.right}; }
  [[nodiscard]] Words words() const {
    return [*this](double value) { return fmt::format("{:g}{}{}", value, *name == 0 ? "" : " ", name); };
  }
};

AxisUnit axis_unit(Unit unit, double most) {
  if (unit == Unit::bytes) return {1LL << 30, "GiB"};
  if (unit == Unit::percent) return {0.01, "%"};
  if (unit == Unit::hourly) return {1.0 / 3600, "/h"};
  if (unit != Unit::time) return {};
  if (most > 2 * 86400) return {86400, "days"};
  return most > 7200 ? AxisUnit{3600, "h"} : most > 2 ? AxisUnit{1, "s"} : AxisUnit{1e-3, "ms"};
}

}  // namespace

std::string front_chart(const FrontAxis& across, const FrontAxis& up, const std::vector<std::string>& names, bool line) {
  const Scale x = scale_of(across.values, 80, chart_width - 40), y = scale_of(up.values, front_height, 24);
  const AxisUnit across_in = axis_unit(across.ticks, x.to), up_in = axis_unit(up.ticks, std::max(y.from, y.to));
  std::string out = axis_below(across_in.of(x), 24, front_height, across_in.words()) + axis_left(up_in.of(y), x.right, up_in.words());
  out += label(70, 14, up.name, "strong") + label(x.right, front_height + 34, across.name, "end strong") + "\n";
  std::string path, circles;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string px = coordinate(x(across.values[i])), py = coordinate(y(up.values[i]));
    path += path.empty() ? fmt::format("M{} {}", px, py) : fmt::format("H{}V{}", px, py);
    circles += fmt::format("<circle class=\"c-0\" cx=\"{}\" cy=\"{}\" r=\"4\"><title>{}, {}: {}</title></circle>\n", px, py,
                           in_words(across.values[i], across.exact), in_words(up.values[i], up.exact), escaped(names[i]));
  }
  if (line) out += fmt::format("<path class=\"line c-0\" d=\"{}\"/>\n", path);
  return svg(fmt::format("{} against {}", up.name, across.name), front_height + 40, out + circles);
}

}  // namespace rehearse::sim::page
