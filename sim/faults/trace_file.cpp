#include "sim/faults/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "sim/faults/given_faults.hpp"

namespace rehearse::sim {
namespace {

using config::InputError;
using config::Node;
using Row = std::vector<std::string>;

const std::vector<std::string> required_columns{"time_s", "component", "kind", "duration_s"};
const std::vector<std::string> all_columns{"time_s", "component", "kind",     "duration_s", "node",
                                           "nodes",  "level",     "slowdown", "gpu",        "rail"};

Row split(const std::string& line) {
  Row cells{""};
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (c != ' ' && c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; });
}

// What fails takes its processes when it is software, the job when nobody knows what it was, and else its nodes.
std::string_view usual_level(const std::string& component) {
  if (component == "software") return "process";
  return component == "any" ? "job" : "pod";
}

class TraceReader {
 public:
  TraceReader(const std::string& path, const FaultContext& context) : path_(path), context_(context) {}

  Node script() {
    std::ifstream file(path_);
    if (!file) throw InputError("cannot read '" + path_ + "'");
    std::string faults;
    while (std::getline(file, line_)) {
      ++number_;
      if (line_.empty() || line_ == "\r" || line_.starts_with('#')) continue;
      if (columns_.empty()) {
        read_header();
      } else {
        faults += fmt::format("{}{}", faults.empty() ? "" : ", ", read_row());
      }
    }
    if (columns_.empty())
      throw InputError({path_, std::max(number_, 1), 1}, "no header", "", "the first line must be time_s,component,kind,duration_s");
    return Node::load_text(fmt::format("{{source: script, faults: [{}]}}", faults), path_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why, std::string_view hint = {}) const {
    throw InputError({path_, number_, 1}, why, line_, hint);
  }

  void read_header() {
    columns_ = split(line_);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (std::ranges::find(all_columns, columns_[i]) == all_columns.end()) {
        refuse("unknown column " + config::shown(columns_[i]), config::suggestion(columns_[i], all_columns));
      }
      if (std::find(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(i), columns_[i]) !=
          columns_.begin() + static_cast<std::ptrdiff_t>(i)) {
        refuse("column " + config::shown(columns_[i]) + " twice");
      }
    }
    for (const std::string& name : required_columns) {
      if (std::ranges::find(columns_, name) == columns_.end()) refuse(fmt::format("no column '{}'", name));
    }
  }

  [[nodiscard]] std::map<std::string, std::string> cells() const {
    const Row row = split(line_);
    if (row.size() != columns_.size()) refuse(fmt::format("{} values in a table of {} columns", row.size(), columns_.size()));
    std::map<std::string, std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) cells[columns_[i]] = row[i];
    for (const auto& [name, text] : cells) check_cell(name, text);
    return cells;
  }

  void check_cell(const std::string& name, const std::string& text) const {
    const bool word = name == "component" || name == "kind" || name == "level";
    if (text.empty() && std::ranges::find(required_columns.begin(), required_columns.end() - 1, name) != required_columns.end() - 1) {
      refuse(fmt::format("no {}", name));
    }
    if (text.empty()) return;
    if (word ? !is_word(text) : !is_number(text)) {
      refuse(fmt::format("{} must be a {}, not {}", name, word ? "word" : "number", config::shown(text)));
    }
  }

  // The row as a fault of a script, in YAML's flow style.
  std::string read_row() {
    auto row = cells();
    const bool slow = row["kind"] == "slow";
    std::string text = fmt::format("{{at: {} s, component: {}, kind: {}", row["time_s"], row["component"], row["kind"]);
    const std::string level = row["level"].empty() && !slow ? std::string(usual_level(row["component"])) : row["level"];
    if (!level.empty()) text += ", level: " + level;
    if (!row["duration_s"].empty()) text += fmt::format(", {}: {} s", slow ? "duration" : "recovery", row["duration_s"]);
    for (const char* key : {"node", "nodes", "slowdown", "gpu", "rail"}) {
      if (!row[key].empty()) text += fmt::format(", {}: {}", key, row[key]);
    }
    text += '}';
    check(text);
    return text;
  }

  void check(const std::string& text) {
    const Ns at = [&] {
      try {
        return read_given_fault(Node::load_text(text, path_), context_, "trace").at;
      } catch (const InputError& error) {
        refuse(error.message(), error.hint());
      }
    }();
    if (at < last_) refuse("earlier than the row before it");
    last_ = at;
  }

  const std::string& path_;
  const FaultContext& context_;
  std::string line_;
  int number_ = 0;
  Row columns_;
  Ns last_ = 0;
};

}  // namespace

Node read_trace_file(const std::string& path, const FaultContext& context) { return TraceReader(path, context).script(); }

}  // namespace rehearse::sim
