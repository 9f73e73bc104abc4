#include "config/quantity.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <vector>

namespace rehearse::config {
namespace {

// value in the base unit = number * times / per. Two integers instead of one factor: 5 us is 5 / 1e6, the double nearest to 5e-06.
struct Unit {
  std::string_view name;
  double times = 1;
  double per = 1;
};

// In base units. Beyond, what is worked out from quantities (products, quotients, squares) would no longer be finite.
constexpr double least_of_any = 1e-30, most_of_any = 1e30;
constexpr double kib = 1024;
constexpr double bits_per_byte = 8;
constexpr double seconds_per_day = 86400;

constexpr std::array time_units{Unit{"ns", 1, 1e9}, Unit{"us", 1, 1e6}, Unit{"ms", 1, 1e3},           Unit{"s"},
                                Unit{"min", 60},    Unit{"h", 3600},    Unit{"day", seconds_per_day}, Unit{"days", seconds_per_day}};
constexpr std::array byte_units{Unit{"B"},
                                Unit{"kB", 1e3},
                                Unit{"MB", 1e6},
                                Unit{"GB", 1e9},
                                Unit{"TB", 1e12},
                                Unit{"PB", 1e15},
                                Unit{"KiB", kib},
                                Unit{"MiB", kib* kib},
                                Unit{"GiB", kib* kib* kib},
                                Unit{"TiB", kib* kib* kib* kib}};
constexpr std::array bandwidth_units{Unit{"B/s"},
                                     Unit{"kB/s", 1e3},
                                     Unit{"MB/s", 1e6},
                                     Unit{"GB/s", 1e9},
                                     Unit{"TB/s", 1e12},
                                     Unit{"PB/s", 1e15},
                                     Unit{"KiB/s", kib},
                                     Unit{"MiB/s", kib* kib},
                                     Unit{"GiB/s", kib* kib* kib},
                                     Unit{"TiB/s", kib* kib* kib* kib},
                                     Unit{"bps", 1, bits_per_byte},
                                     Unit{"kbps", 1e3, bits_per_byte},
                                     Unit{"Mbps", 1e6, bits_per_byte},
                                     Unit{"Gbps", 1e9, bits_per_byte},
                                     Unit{"Tbps", 1e12, bits_per_byte}};
constexpr std::array compute_units{Unit{"FLOP/s"},      Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15},
                                   Unit{"GFLOPS", 1e9}, Unit{"TFLOPS", 1e12}, Unit{"PFLOPS", 1e15}};
constexpr std::array rate_units{Unit{"/s"}, Unit{"/min", 1, 60}, Unit{"/h", 1, 3600}, Unit{"/day", 1, seconds_per_day}};
constexpr std::array power_units{Unit{"W"}, Unit{"kW", 1e3}, Unit{"MW", 1e6}};
constexpr std::array frequency_units{Unit{"Hz"}, Unit{"MHz", 1e6}, Unit{"GHz", 1e9}};
constexpr std::array length_units{Unit{"m"}, Unit{"km", 1e3}};
constexpr std::array level_units{Unit{"dBm"}};
constexpr std::array level_density_units{Unit{"dBm/Hz"}};
constexpr std::array chance_units{Unit{"/round"}};

// How a dimension is written: its units, its base unit, an example, and the units in which people read it (ascending).
struct Notation {
  std::span<const Unit> units;
  std::string_view base;
  std::string_view example;
  std::vector<Unit> readable;
};

const Notation& notation(Dimension dimension) {
  static const Notation time{time_units,
                             "s",
                             "5 us or 5 ms",
                             {{"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3}, {"s"}, {"min", 60}, {"h", 3600}, {"days", seconds_per_day}}};
  static const Notation bytes{byte_units,
                              "B",
                              "80 GiB or 80 GB",
                              {{"B"}, {"KiB", kib}, {"MiB", kib * kib}, {"GiB", kib * kib * kib}, {"TiB", kib * kib * kib * kib}}};
  static const Notation bandwidth{bandwidth_units,
                                  "B/s",
                                  "400 Gbps or 50 GB/s",
                                  {{"B/s"}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}}};
  static const Notation compute{
      compute_units, "FLOP/s", "312 TFLOP/s", {{"FLOP/s"}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
  static const Notation rate{rate_units, "/s", "0.005 /day", {{"/day", 1, seconds_per_day}, {"/h", 1, 3600}, {"/min", 1, 60}, {"/s"}}};
  static const Notation power{power_units, "W", "700 W", {{"W"}, {"kW", 1e3}, {"MW", 1e6}}};
  static const Notation frequency{frequency_units, "Hz", "1.98 GHz", {{"Hz"}, {"MHz", 1e6}, {"GHz", 1e9}}};
  static const Notation length{length_units, "m", "300 m or 1.2 km", {{"m"}, {"km", 1e3}}};
  static const Notation level{level_units, "dBm", "23 dBm", {{"dBm"}}};
  static const Notation level_density{level_density_units, "dBm/Hz", "-174 dBm/Hz", {{"dBm/Hz"}}};
  static const Notation chance{chance_units, "/round", "0.02 /round", {{"/round"}}};
  switch (dimension) {
    case Dimension::time:
      return time;
    case Dimension::bytes:
      return bytes;
    case Dimension::bandwidth:
      return bandwidth;
    case Dimension::compute_rate:
      return compute;
    case Dimension::rate:
      return rate;
    case Dimension::power:
      return power;
    case Dimension::frequency:
      return frequency;
    case Dimension::length:
      return length;
    case Dimension::level:
      return level;
    case Dimension::level_density:
      return level_density;
    case Dimension::chance:
      break;
  }
  return chance;
}

std::string known_units(const Notation& how) {
  std::string out;
  for (const Unit& unit : how.units) out += fmt::format("{}{}", out.empty() ? "" : ", ", unit.name);
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The leading decimal number; removes it from `text`. Words such as "inf" and "nan" are not numbers here.
std::optional<double> take_number(std::string_view& text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() <= first || (text[first] != '.' && (text[first] < '0' || text[first] > '9'))) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = HUGE_VAL;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// Three significant digits, as people write them: 27.8, 4.19, 450, 80.0.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

double in_unit(double value, const Unit& unit) { return value * unit.per / unit.times; }

// True when the value would be shown with at least 1 of this unit.
bool reaches(double value, const Unit& unit) { return std::abs(in_unit(value, unit)) >= 0.9995; }

}  // namespace

std::vector<std::string> units_of(Dimension dimension) {
  std::vector<std::string> names;
  for (const Unit& unit : notation(dimension).units) names.emplace_back(unit.name);
  return names;
}

std::string_view base_unit_of(Dimension dimension) { return notation(dimension).base; }

std::string_view example_of(Dimension dimension) { return notation(dimension).example; }

std::optional<double> parse_quantity(std::string_view text, Dimension dimension, std::string& why) {
  const Notation& how = notation(dimension);
  std::string_view rest = trimmed(text);
  const std::optional<double> number = take_number(rest);
  if (!number) {
    why = fmt::format("'{}' does not start with a number (write {})", text, how.example);
    return std::nullopt;
  }
  rest = trimmed(rest);
  if (rest.empty()) {
    why = fmt::format("a unit is missing (write {})", how.example);
    return std::nullopt;
  }
  for (const Unit& unit : how.units) {
    if (unit.name != rest) continue;
    const double value = *number * unit.times / unit.per;
    if (value == 0 || (std::abs(value) >= least_of_any && std::abs(value) <= most_of_any)) return value;
    why = fmt::format("'{}' is out of range", text);
    return std::nullopt;
  }
  why = fmt::format("unknown unit '{}' (known: {})", rest, known_units(how));
  return std::nullopt;
}

std::string format_quantity(double value, Dimension dimension) { return fmt::format("{} {}", value, notation(dimension).base); }

std::string human_quantity(double value, Dimension dimension) {
  const Notation& how = notation(dimension);
  if (value == 0) return fmt::format("0 {}", how.base);
  const Unit* best = &how.readable.front();
  for (const Unit& unit : how.readable) {
    if (reaches(value, unit)) best = &unit;
  }
  return fmt::format("{} {}", three_digits(in_unit(value, *best)), best->name);
}

}  // namespace rehearse::config
