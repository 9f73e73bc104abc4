// timeline.json, a line at a time, and of a line only what is drawn: the file is long, and most of it is for other readers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <istream>
#include <limits>
#include <optional>

#include "config/input_error.hpp"
#include "sim/report/page/json_scanner.hpp"
#include "sim/report/page/timeline_view.hpp"

namespace rehearse::sim::page {
namespace {

struct FileEvent {
  std::optional<double> pid, tid, ts, dur;  // ts and dur in microseconds
  std::optional<std::string> ph, name;
  std::optional<std::string> phase, operation, label;  // in args; `label` is called name there
};

struct EventNumber {
  std::string_view key;
  std::optional<double> FileEvent::*to;
  void read(JsonScanner& in, FileEvent& event) const { event.*to = in.number(); }
};
struct EventText {
  std::string_view key;
  std::optional<std::string> FileEvent::*to;
  void read(JsonScanner& in, FileEvent& event) const { event.*to = in.text(); }
};
constexpr std::array event_numbers{EventNumber{"pid", &FileEvent::pid}, EventNumber{"tid", &FileEvent::tid},
                                   EventNumber{"ts", &FileEvent::ts}, EventNumber{"dur", &FileEvent::dur}};
constexpr std::array event_texts{EventText{"ph", &FileEvent::ph}, EventText{"name", &FileEvent::name}};
constexpr std::array event_arguments{EventText{"phase", &FileEvent::phase}, EventText{"operation", &FileEvent::operation},
                                     EventText{"name", &FileEvent::label}};

// Whether the key is in the table.
template <typename Table>
bool is_read(const Table& table, JsonScanner& in, std::string_view key, FileEvent& event) {
  const auto field = std::ranges::find(table, key, [](const auto& one) { return one.key; });
  if (field == table.end()) return false;
  field->read(in, event);
  return true;
}

void read_argument(JsonScanner& in, std::string_view key, FileEvent& event) {
  if (!is_read(event_arguments, in, key, event)) in.skip();
}

void read_field(JsonScanner& in, std::string_view key, FileEvent& event) {
  if (is_read(event_texts, in, key, event) || is_read(event_numbers, in, key, event)) return;
  if (key != "args") return in.skip();
  in.object([&](std::string_view argument) { read_argument(in, argument, event); });
}

FileEvent parsed(std::string_view line) {
  FileEvent event;
  JsonScanner in(line);
  in.object([&](std::string_view key) { read_field(in, key, event); });
  in.end();
  return event;
}

template <typename T>
const T& needed(const std::optional<T>& value, std::string_view key) {
  if (!value) throw config::InputError(fmt::format("it has no {}", key));
  return *value;
}

int whole(double value) {
  if (value != std::floor(value) || std::abs(value) > std::numeric_limits<int>::max())
    throw config::InputError(fmt::format("{} is not the number of a rank or stream", value));
  return static_cast<int>(value);
}

long long whole_nanoseconds(double microseconds) { return std::llround(microseconds * 1e3); }

// Labels and operations; what else the file holds is not drawn.
void add(const FileEvent& event, TimelineSketch& sketch) {
  const std::string &ph = needed(event.ph, "ph"), &name = needed(event.name, "name");
  const int pid = whole(needed(event.pid, "pid")), tid = whole(event.tid.value_or(0));
  if (ph == "M" && name == "process_name") sketch.name_rank(pid, needed(event.label, "args.name"));
  if (ph == "M" && name == "thread_name") sketch.name_stream(pid, tid, needed(event.label, "args.name"));
  if (ph != "X") return;
  const long long start_ns = whole_nanoseconds(needed(event.ts, "ts"));
  sketch.add(pid, tid, event.phase.value_or(""), start_ns, start_ns + whole_nanoseconds(needed(event.dur, "dur")),
             event.operation ? *event.operation : name);
}

}  // namespace

TimelineView view_of(std::istream& timeline_json, const std::string& path) {
  TimelineSketch sketch;
  std::string line;
  for (int number = 1; std::getline(timeline_json, line); ++number) {
    if (line.ends_with(',')) line.pop_back();
    if (!line.starts_with(R"({"ph":"M")") && !line.starts_with(R"({"ph":"X")")) continue;
    try {
      add(parsed(line), sketch);
    } catch (const config::InputError& error) {
      throw config::InputError(fmt::format("{}:{}: this is not an event as rehearse writes it: {}", path, number, error.message()));
    }
  }
  return sketch.view();
}

}  // namespace rehearse::sim::page
