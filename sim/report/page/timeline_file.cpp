// timeline.json, a line at a time, and of a line only what is drawn: the file is long, and most of it is for other readers.
#include <fmt/format.h>

#include <cmath>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/input_error.hpp"
#include "sim/report/page/timeline_view.hpp"

namespace rehearse::sim::page {
namespace {

using nlohmann::json;

struct FileEvent {
  std::optional<double> pid, tid, ts, dur;  // ts and dur in microseconds
  std::optional<std::string> ph, name;
  std::optional<std::string> phase, operation, label;  // in args; `label` is called name there
};

// Called by the parser: each key says where the value behind it goes.
class EventReader final : public nlohmann::json_sax<json> {
 public:
  FileEvent event;
  std::string refusal;

  bool key(std::string& name) override {
    if (depth_ == 1) in_args_ = name == "args";
    number_ = depth_ == 1 ? number_of(name) : nullptr;
    text_ = depth_ == 1 ? text_of(name) : depth_ == 2 && in_args_ ? argument_of(name) : nullptr;
    return true;
  }
  bool string(std::string& value) override {
    if (number_ != nullptr) return refuse("a text where a number belongs");
    if (text_ != nullptr) *text_ = std::move(value);
    text_ = nullptr;
    return true;
  }
  bool number_integer(json::number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(json::number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(json::number_float_t value, const std::string&) override { return number(value); }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool binary(json::binary_t&) override { return other(); }
  bool start_object(std::size_t) override { return opened(); }
  bool start_array(std::size_t) override { return opened(); }
  bool end_object() override { return closed(); }
  bool end_array() override { return closed(); }
  bool parse_error(std::size_t, const std::string&, const json::exception& error) override { return refuse(error.what()); }

 private:
  std::optional<double>* number_of(std::string_view key) {
    if (key == "pid") return &event.pid;
    if (key == "tid") return &event.tid;
    if (key == "ts") return &event.ts;
    return key == "dur" ? &event.dur : nullptr;
  }
  std::optional<std::string>* text_of(std::string_view key) {
    if (key == "ph") return &event.ph;
    return key == "name" ? &event.name : nullptr;
  }
  std::optional<std::string>* argument_of(std::string_view key) {
    if (key == "phase") return &event.phase;
    if (key == "operation") return &event.operation;
    return key == "name" ? &event.label : nullptr;
  }
  bool number(double value) {
    if (text_ != nullptr) return refuse("a number where a text belongs");
    if (number_ != nullptr) *number_ = value;
    number_ = nullptr;
    return true;
  }
  bool other() { return number_ == nullptr && text_ == nullptr ? true : refuse("neither a number nor a text"); }
  bool opened() {
    ++depth_;
    return other();
  }
  bool closed() {
    --depth_;
    return true;
  }
  bool refuse(std::string_view why) {
    refusal = why;
    return false;
  }

  int depth_ = 0;
  bool in_args_ = false;
  std::optional<double>* number_ = nullptr;  // where the next value goes, when it is of use
  std::optional<std::string>* text_ = nullptr;
};

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

FileEvent parsed(const std::string& line) {
  EventReader reader;
  if (!json::sax_parse(line, &reader)) throw config::InputError(reader.refusal);
  return std::move(reader.event);
}

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
