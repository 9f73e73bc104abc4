#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "config/reference.hpp"
#include "sim/federated/device.hpp"

namespace rehearse::federated {
namespace {

using Cells = std::vector<std::string>;

const Cells& known_columns() {
  static const Cells known{"name",      "count",   "speed_flop_per_s", "ms_per_sample", "uplink_bytes_per_s", "downlink_bytes_per_s",
                           "latency_s", "samples", "memory_bytes",     "leakage"};
  return known;
}

Cells split(const std::string& line) {
  Cells cells{""};
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != '\r' && (c != ' ' || !cells.back().empty())) {
      cells.back() += c;
    }
  }
  return cells;
}

class DeviceCsv {
 public:
  explicit DeviceCsv(std::string path) : path_(std::move(path)) {}

  std::vector<Entry> read(const config::Node& reference) {
    std::ifstream file(path_);
    if (!file) reference.fail(fmt::format("cannot read '{}'", path_));
    std::vector<Entry> entries;
    while (std::getline(file, line_)) {
      ++number_;
      if (line_.empty() || line_ == "\r" || line_.starts_with('#')) continue;
      if (columns_.empty()) {
        read_titles();
      } else {
        entries.push_back(read_row());
      }
    }
    if (columns_.empty()) refuse("the file must begin with its titles", fmt::format("{}", fmt::join(known_columns(), ",")));
    if (entries.empty()) refuse("there are no devices below the titles", "");
    return entries;
  }

 private:
  [[noreturn]] void refuse(std::string_view why, std::string_view hint) const {
    throw config::InputError({path_, std::max(number_, 1), 1}, why, line_, hint);
  }

  void read_titles() {
    columns_ = split(line_);
    for (const std::string& title : columns_) {
      if (std::ranges::find(known_columns(), title) == known_columns().end()) {
        refuse(fmt::format("unknown column '{}'", title), config::suggestion(title, known_columns()));
      }
      if (std::ranges::count(columns_, title) > 1) refuse(fmt::format("column '{}' stands twice", title), "");
    }
    for (const char* needed : {"name", "uplink_bytes_per_s", "downlink_bytes_per_s", "samples"}) {
      if (!has(needed)) refuse(fmt::format("column '{}' is missing", needed), "");
    }
    if (has("speed_flop_per_s") == has("ms_per_sample")) refuse("give one of the columns speed_flop_per_s and ms_per_sample", "");
  }

  [[nodiscard]] bool has(std::string_view title) const { return std::ranges::find(columns_, title) != columns_.end(); }

  Entry read_row() {
    cells_ = split(line_);
    if (cells_.size() != columns_.size()) refuse(fmt::format("{} cells below {} titles", cells_.size(), columns_.size()), "");
    Entry entry;
    entry.where = {path_, number_, 1};
    entry.name = cell("name");
    if (entry.name.empty()) refuse("a device needs a name", "");
    entry.count = has("count") ? static_cast<int>(whole("count", 1, most_devices)) : 1;
    entry.samples = Drawn(whole("samples", 1, 1e12));
    entry.uplink_bytes_per_s = Drawn(number("uplink_bytes_per_s", 0, 1e15));
    entry.downlink_bytes_per_s = Drawn(number("downlink_bytes_per_s", 0, 1e15));
    if (has("latency_s")) entry.latency_s = Drawn(number("latency_s", 0, 1e9));
    if (has("memory_bytes")) entry.memory_bytes = Drawn(number("memory_bytes", 0, 1e18));
    if (has("leakage")) entry.leakage = Drawn(number("leakage", 0, 1));
    if (has("speed_flop_per_s")) {
      entry.flop_per_s = Drawn(number("speed_flop_per_s", 0, 1e24));
    } else {
      constexpr double ms_per_s = 1000;
      entry.s_per_sample = number("ms_per_sample", 1e-9, 1e12) / ms_per_s;
    }
    return entry;
  }

  [[nodiscard]] const std::string& cell(std::string_view title) const {
    return cells_[static_cast<std::size_t>(std::ranges::find(columns_, title) - columns_.begin())];
  }

  [[nodiscard]] double number(std::string_view title, double low, double high) const {
    const std::string& text = cell(title);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high)) {
      refuse(fmt::format("device '{}': {} must be a number from {} to {}, not {}", cell("name"), title, low, high, config::shown(text)),
             "");
    }
    return value;
  }
  [[nodiscard]] double whole(std::string_view title, double low, double high) const {
    const double value = number(title, low, high);
    if (value != std::floor(value)) refuse(fmt::format("device '{}': {} must be a whole number", cell("name"), title), "");
    return value;
  }

  std::string path_, line_;
  Cells columns_, cells_;
  int number_ = 0;
};

}  // namespace

std::vector<Entry> read_device_csv(const config::Node& path) { return DeviceCsv(config::referenced_path(path)).read(path); }

}  // namespace rehearse::federated
