#include "sim/calibrate/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/input_error.hpp"
#include "sim/unpacked_file.hpp"

namespace rehearse::sim {
namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = std::size_t{4} << 30U;

std::string unpacked(const std::string& path) {
  UnpackedFile file(path);
  std::string text;
  std::vector<char> piece(std::size_t{1} << 20U);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos ? text.size() > piece.size() : text[begin] != '{')
      throw config::InputError(fmt::format("{} is no trace of the PyTorch profiler: it does not begin with '{{'", config::shown(path)));
    if (text.size() > most_bytes)
      throw config::InputError(fmt::format("{} is larger than 4 GiB", config::shown(path)), "trace fewer steps");
  }
  return text;
}

// One event's fields, as far as they are of use.
struct Event {
  std::string name, category, phase, grid, block, group;
  std::optional<double> start_us, duration_us;
  double stream = -1, device = 0;
};

// Follows the document to traceEvents, deviceProperties and distributedInfo; the rest passes by.
class Handler final : public json::json_sax_t {
 public:
  explicit Handler(KinetoTrace& trace) : trace_(trace) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return number(value); }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override {
    if (in_events() && path_.size() == 2) event_ = {};
    path_.emplace_back();
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    if (in_events() && path_.size() == 2) take(std::move(event_));
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    path_.emplace_back("[]");
    return true;
  }
  bool end_array() override {
    path_.pop_back();
    return true;
  }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool string(string_t& value) override {
    if (path_.size() == 3 && path_[0] == "deviceProperties" && path_[2] == "name" && trace_.device.empty()) trace_.device = value;
    if (!in_events()) return true;
    if (path_.size() == 3) {
      const std::string& key = path_[2];
      if (key == "name") {
        event_.name = std::move(value);
      } else if (key == "cat") {
        event_.category = std::move(value);
      } else if (key == "ph") {
        event_.phase = std::move(value);
      }
    } else if (path_.size() == 4 && path_[3] == "Process Group Description") {
      event_.group = std::move(value);
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    throw config::InputError(fmt::format("{} is no trace: at byte {}: {}", config::shown(trace_.path), position, error.what()),
                             "a trace of PyTorch's profiler, whole");
  }

  [[nodiscard]] bool saw_events() const { return saw_events_; }

 private:
  [[nodiscard]] bool in_events() const { return path_.size() >= 2 && path_[0] == "traceEvents"; }

  bool number(double value) {
    if (path_.size() == 2 && path_[0] == "distributedInfo" && path_[1] == "rank") trace_.rank = static_cast<int>(value);
    if (!in_events()) return true;
    if (path_.size() == 3) {
      if (path_[2] == "ts") event_.start_us = value;
      if (path_[2] == "dur") event_.duration_us = value;
    } else if (path_.size() == 4) {
      if (path_[3] == "stream") event_.stream = value;
      if (path_[3] == "device") event_.device = value;
    } else if (path_.size() == 5) {
      if (path_[3] == "grid") event_.grid += fmt::format("{} ", value);
      if (path_[3] == "block") event_.block += fmt::format("{} ", value);
    }
    return true;
  }

  void take(Event event) {
    saw_events_ = true;
    if (event.phase != "X" || !event.start_us || !event.duration_us || *event.duration_us < 0) return;
    if (event.category == "cuda_runtime" || event.category == "cuda_driver") {
      if (event.name.find("LaunchKernel") != std::string::npos) trace_.launch_us.push_back(*event.duration_us);
      return;
    }
    if (event.category == "user_annotation" && event.name.starts_with("ProfilerStep#")) ++trace_.steps;
    const bool copy = event.category == "gpu_memcpy" || event.category == "gpu_memset";
    if (!copy && event.category != "kernel") return;
    trace_.kernels.push_back({.name = std::move(event.name),
                              .start_us = *event.start_us,
                              .end_us = *event.start_us + *event.duration_us,
                              .device = static_cast<int>(event.device),
                              .stream = static_cast<int>(event.stream),
                              .launch = event.grid + "/ " + event.block,
                              .group = std::move(event.group),
                              .copy = copy});
  }

  KinetoTrace& trace_;
  std::vector<std::string> path_;  // the keys that lead here; "[]" in an array
  Event event_;
  bool saw_events_ = false;
};

void settle(KinetoTrace& trace) {
  std::ranges::stable_sort(trace.kernels, {}, &TraceKernel::start_us);
  const double first = trace.kernels.front().start_us;
  for (TraceKernel& kernel : trace.kernels) {
    kernel.start_us -= first;
    kernel.end_us -= first;
    trace.span_us = std::max(trace.span_us, kernel.end_us);
  }
}

}  // namespace

KinetoTrace read_kineto(const std::string& path) {
  KinetoTrace trace;
  trace.path = path;
  const std::string text = unpacked(path);
  Handler handler(trace);
  json::sax_parse(text, &handler);
  if (!handler.saw_events())
    throw config::InputError(fmt::format("{} has no traceEvents", config::shown(path)), "a trace of PyTorch's profiler");
  if (trace.kernels.empty())
    throw config::InputError(fmt::format("{} has no kernels of a GPU", config::shown(path)), "ProfilerActivity.CUDA was not traced");
  settle(trace);
  return trace;
}

}  // namespace rehearse::sim
