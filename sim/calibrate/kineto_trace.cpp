#include "sim/calibrate/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "config/input_error.hpp"
#include "sim/calibrate/called_by.hpp"
#include "sim/calibrate/traced_operators.hpp"
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
  std::string name, category, phase, grid, block, group, members;
  std::optional<double> start_us, duration_us, correlation;
  double process = 0, thread = 0, stream = -1, device = 0;
  CalledOperator called;
  TracedCollective collective;
};

constexpr int most_ranks = 1 << 20;  // of a group: more is no group's size
constexpr int most_devices = 1 << 16, most_streams = 1 << 30;

// "[0, 1, 2, 3]" of `size` ranks, each above the one before; PyTorch breaks long lists off ("[0, 8, 16, ...]"), which go on as they began.
std::vector<int> members_of(const std::string& text, int size) {
  std::vector<int> ranks;
  const auto add = [&](long rank) {
    const bool rises = rank < most_ranks && (ranks.empty() ? rank >= 0 : rank > ranks.back());
    if (rises) ranks.push_back(static_cast<int>(rank));
    return rises;
  };
  const char* at = text.c_str();
  while (*at != '\0' && static_cast<int>(ranks.size()) < size) {
    if (*at >= '0' && *at <= '9') {
      char* end = nullptr;
      if (!add(std::strtol(at, &end, 10))) return {};
      at = end;
    } else {
      ++at;
    }
  }
  if (ranks.size() < 2 || (static_cast<int>(ranks.size()) < size && text.find("...") == std::string::npos)) return {};
  for (const int stride = ranks[1] - ranks[0]; static_cast<int>(ranks.size()) < size;) {
    if (!add(long{ranks.back()} + stride)) return {};
  }
  return ranks;
}

// Of a number that a file says, as large as it may be.
int small_number(double value, int most) { return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(most))); }
std::int64_t large_number(double value) { return static_cast<std::int64_t>(std::clamp(value, -1e15, 1e15)); }

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
    if (in_events() && path_.size() == argument_depth) {
      if (auto* lists = sizes_of_arguments()) lists->emplace_back();
    }
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
    } else if (path_.size() == 4) {
      text_of_argument(path_[3], value);
    } else if (path_.size() == argument_depth && path_[3] == "Input type") {
      event_.called.types.push_back(std::move(value));
    } else if (path_.size() == argument_depth && path_[3] == "Concrete Inputs") {
      event_.called.values.push_back(std::move(value));
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& error) override {
    throw config::InputError(fmt::format("{} is no trace: at byte {}: {}", config::shown(trace_.path), position, error.what()),
                             "a trace of PyTorch's profiler, whole");
  }

  [[nodiscard]] bool saw_events() const { return saw_events_; }
  // When all events are there.
  void tell_callers() {
    const auto callers = calls_.callers();
    for (std::size_t i = 0; i < correlations_.size(); ++i) {
      const auto caller = callers.find(correlations_[i]);
      if (caller == callers.end()) continue;
      trace_.kernels[i].called_by = caller->second.index;
      trace_.kernels[i].launched_us = caller->second.launched_us;
    }
  }

 private:
  static constexpr std::size_t argument_depth = 5;  // of what a list of an event's arguments holds

  [[nodiscard]] std::vector<std::vector<std::int64_t>>* sizes_of_arguments() {
    if (path_[3] == "Input Dims") return &event_.called.dims;
    return path_[3] == "Input Strides" ? &event_.called.strides : nullptr;
  }

  void text_of_argument(const std::string& key, std::string& value) {
    if (key == "Process Group Description") {
      event_.group = std::move(value);
    } else if (key == "Process Group Ranks") {
      event_.members = std::move(value);
    } else if (key == "Collective name") {
      event_.collective.name = std::move(value);
    } else if (key == "dtype") {
      event_.collective.dtype = std::move(value);
    }
  }

  [[nodiscard]] bool in_events() const { return path_.size() >= 2 && path_[0] == "traceEvents"; }

  bool number(double value) {
    if (path_.size() == 2 && path_[0] == "distributedInfo" && path_[1] == "rank") trace_.rank = small_number(value, most_ranks - 1);
    if (path_.size() == 2 && path_[0] == "distributedInfo" && path_[1] == "world_size") trace_.world = small_number(value, most_ranks);
    if (!in_events()) return true;
    if (path_.size() == 3) {
      if (path_[2] == "ts") event_.start_us = value;
      if (path_[2] == "dur") event_.duration_us = value;
      if (path_[2] == "pid") event_.process = value;
      if (path_[2] == "tid") event_.thread = value;
    } else if (path_.size() == 4) {
      number_of_argument(path_[3], value);
    } else if (path_.size() == argument_depth) {
      if (path_[3] == "grid") event_.grid += fmt::format("{} ", value);
      if (path_[3] == "block") event_.block += fmt::format("{} ", value);
    } else if (path_.size() == argument_depth + 1) {
      if (auto* lists = sizes_of_arguments(); lists != nullptr && !lists->empty())
        lists->back().push_back(std::max<std::int64_t>(0, large_number(value)));
    }
    return true;
  }

  void number_of_argument(const std::string& key, double value) {
    if (key == "stream") event_.stream = value;
    if (key == "device") event_.device = value;
    if (key == "correlation") event_.correlation = value;
    if (key == "In msg nelems") event_.collective.in_elements = value;
    if (key == "Out msg nelems") event_.collective.out_elements = value;
    if (key == "Group size") event_.collective.group_size = small_number(value, most_ranks);
  }

  // Processes and threads are small numbers or addresses: both together tell threads apart.
  [[nodiscard]] static Calls::Thread thread_of(const Event& event) {
    return static_cast<Calls::Thread>(std::fmod(event.process, 1e6)) * 1'000'000'000 +
           static_cast<Calls::Thread>(std::fmod(event.thread, 1e9));
  }

  void take(Event event) {
    saw_events_ = true;
    if (event.phase != "X" || !event.start_us || !event.duration_us || *event.duration_us < 0) return;
    if (event.category == "cuda_runtime" || event.category == "cuda_driver") {
      if (event.name.find("LaunchKernel") != std::string::npos) trace_.launch_us.push_back(*event.duration_us);
      if (event.correlation) calls_.add_launch(thread_of(event), *event.start_us, large_number(*event.correlation));
      return;
    }
    if (event.category == "cpu_op") {
      if (event.called.dims.empty() || !counts_shapes(event.name)) return;
      calls_.add_operator(thread_of(event), *event.start_us, *event.duration_us, static_cast<std::uint32_t>(trace_.operators.size()));
      event.called.name = std::move(event.name);
      trace_.operators.push_back(std::move(event.called));
      return;
    }
    if (event.category == "user_annotation" && event.name.starts_with("ProfilerStep#")) ++trace_.steps;
    const bool copy = event.category == "gpu_memcpy" || event.category == "gpu_memset";
    if (!copy && event.category != "kernel") return;
    event.collective.ranks = members_of(event.members, event.collective.group_size);
    correlations_.push_back(event.correlation ? large_number(*event.correlation) : -1);
    const KernelClass cls = copy ? KernelClass::copy : class_by_name(event.name);
    trace_.kernels.push_back({.name = std::move(event.name),
                              .start_us = *event.start_us,
                              .end_us = *event.start_us + *event.duration_us,
                              .device = small_number(event.device, most_devices),
                              .stream = small_number(event.stream, most_streams),
                              .launch = event.grid + "/ " + event.block,
                              .group = std::move(event.group),
                              .cls = cls,
                              .collective = std::move(event.collective)});
  }

  // There are few names, and many kernels.
  KernelClass class_by_name(const std::string& name) {
    const auto [it, added] = classes_.try_emplace(name, KernelClass::unknown);
    if (added) it->second = class_of(name);
    return it->second;
  }

  KinetoTrace& trace_;
  Calls calls_;
  std::vector<std::int64_t> correlations_;  // of the kernels
  std::unordered_map<std::string, KernelClass> classes_;
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
    kernel.launched_us -= first;
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
  if (std::ranges::all_of(trace.kernels, [](const TraceKernel& kernel) { return kernel.end_us <= kernel.start_us; }))
    throw config::InputError(fmt::format("{} has no kernel that takes time", config::shown(path)), "durations are in the key dur");
  handler.tell_callers();
  settle(trace);
  return trace;
}

}  // namespace rehearse::sim
