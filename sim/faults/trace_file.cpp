#include "sim/faults/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "config/table.hpp"
#include "sim/faults/given_faults.hpp"

namespace rehearse::sim {
namespace {

using config::InputError;
using config::Node;

const std::vector<std::string> required_columns{"time_s", "component", "kind", "duration_s"};
const std::vector<std::string> all_columns{"time_s", "component", "kind",     "duration_s", "node",
                                           "nodes",  "level",     "slowdown", "gpu",        "rail"};

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; });
}

// What fails takes its processes when it is software, the job when nobody knows what it was, and else its nodes.
std::string_view usual_level(std::string_view component) {
  if (component == "software") return "process";
  return component == "any" ? "job" : "pod";
}

class TraceReader {
 public:
  TraceReader(const Node& reference, const FaultContext& context) : table_(reference), context_(context) {
    table_.check_titles(all_columns, required_columns);
  }

  Node script() {
    std::string faults;
    while (table_.next()) faults += fmt::format("{}{}", faults.empty() ? "" : ", ", read_row());
    return Node::load_text(fmt::format("{{source: script, faults: [{}]}}", faults), table_.where().file);
  }

 private:
  [[nodiscard]] std::map<std::string_view, std::string_view> cells() const {
    std::map<std::string_view, std::string_view> cells;
    for (std::size_t i = 0; i < table_.titles().size(); ++i) {
      check_cell(i);
      cells[table_.titles()[i]] = table_.cell(i);
    }
    return cells;
  }

  void check_cell(std::size_t column) const {
    const std::string& name = table_.titles()[column];
    const std::string_view text = table_.cell(column);
    const bool word = name == "component" || name == "kind" || name == "level";
    if (text.empty() && std::ranges::find(required_columns.begin(), required_columns.end() - 1, name) != required_columns.end() - 1) {
      table_.fail_at(column, fmt::format("no {}", name));
    }
    if (text.empty()) return;
    if (word ? !is_word(text) : !config::number_in(text)) {
      table_.fail_at(column, fmt::format("{} must be a {}, not {}", name, word ? "word" : "number", config::shown(text)));
    }
  }

  // The row as a fault of a script, in YAML's flow style.
  std::string read_row() {
    auto row = cells();
    const bool slow = row["kind"] == "slow";
    std::string text = fmt::format("{{at: {} s, component: {}, kind: {}", row["time_s"], row["component"], row["kind"]);
    const std::string_view level = row["level"].empty() && !slow ? usual_level(row["component"]) : row["level"];
    if (!level.empty()) text += fmt::format(", level: {}", level);
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
        return read_given_fault(Node::load_text(text, table_.where().file), context_, "trace").at;
      } catch (const InputError& error) {
        table_.fail(error.message(), error.hint());
      }
    }();
    if (at < last_) table_.fail("earlier than the row before it");
    last_ = at;
  }

  config::Table table_;
  const FaultContext& context_;
  Ns last_ = 0;
};

}  // namespace

Node read_trace_file(const Node& reference, const FaultContext& context) { return TraceReader(reference, context).script(); }

}  // namespace rehearse::sim
