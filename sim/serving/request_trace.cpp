#include "sim/serving/request_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <fstream>

#include "config/reference.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Request;

enum class Clock { none, seconds, milliseconds, date };
struct Kind {
  std::string_view header;  // how it begins
  std::size_t columns;      // at least
  Clock clock;
};
constexpr std::array<Kind, 4> kinds{{{"arrival_s,input_tokens,output_tokens", 3, Clock::seconds},
                                     {"TIMESTAMP,ContextTokens,GeneratedTokens", 3, Clock::date},
                                     {"timestamp_ms,input_tokens,output_tokens", 3, Clock::milliseconds},
                                     {"num_prefill_tokens,num_decode_tokens", 2, Clock::none}}};
constexpr double most_seconds = 1e9;
constexpr int most_tokens = 100'000'000;

class TraceFile {
 public:
  explicit TraceFile(std::string path) : path_(std::move(path)), file_(path_) {}
  [[nodiscard]] bool readable() const { return file_.is_open(); }
  std::vector<Request> read(bool needs_times);

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const {
    throw config::InputError({path_, line_, 1}, what, text_, hint);
  }
  bool next_line() {
    ++line_;
    if (!std::getline(file_, text_)) return false;
    if (text_.ends_with('\r')) text_.pop_back();
    return true;
  }
  [[nodiscard]] const Kind& kind() const;
  [[nodiscard]] Request row(const Kind& kind) const;
  [[nodiscard]] double number(std::string_view text, double low, double high, const char* what) const;
  [[nodiscard]] double seconds_of_date(std::string_view text) const;

  std::string path_, text_;
  std::ifstream file_;
  int line_ = 0;
};

const Kind& TraceFile::kind() const {
  for (const Kind& kind : kinds) {
    if (text_.starts_with(kind.header)) return kind;
  }
  std::vector<std::string_view> known;
  for (const Kind& kind : kinds) known.push_back(kind.header);
  fail("these are not the columns of a request trace", fmt::format("known: {}", fmt::join(known, "; ")));
}

double TraceFile::number(std::string_view text, double low, double high, const char* what) const {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high)) {
    fail(fmt::format("{} must be a number between {} and {}, not {}", what, low, high, config::shown(text)));
  }
  return value;
}

// "2023-11-16 18:15:46.6805900": seconds since the month's day 0; a trace does not span months.
double TraceFile::seconds_of_date(std::string_view text) const {
  if (text.size() < 19) fail("a time is a date and a time of day", "write for example 2023-11-16 18:15:46.68");
  const double day = number(text.substr(8, 2), 1, 31, "the day"), hour = number(text.substr(11, 2), 0, 23, "the hour"),
               minute = number(text.substr(14, 2), 0, 59, "the minute"), second = number(text.substr(17), 0, 60, "the second");
  return ((day * 24 + hour) * 60 + minute) * 60 + second;
}

Request TraceFile::row(const Kind& kind) const {
  std::vector<std::string_view> cells;
  std::string_view rest = text_;
  while (true) {
    const std::size_t comma = rest.find(',');
    cells.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (cells.size() < kind.columns) fail(fmt::format("a row has {} columns, not {}", kind.columns, cells.size()));
  const std::size_t first = kind.clock == Clock::none ? 0 : 1;
  Request request;
  if (kind.clock == Clock::date) request.arrival_s = seconds_of_date(cells[0]);
  if (kind.clock == Clock::seconds) request.arrival_s = number(cells[0], 0, most_seconds, "an arrival");
  if (kind.clock == Clock::milliseconds) request.arrival_s = number(cells[0], 0, most_seconds * 1e3, "an arrival") / 1e3;
  const auto tokens = [&](std::string_view text, const char* what) {
    const double value = number(text, 1, most_tokens, what);
    if (value != std::floor(value)) fail(fmt::format("{} must be whole", what));
    return static_cast<int>(value);
  };
  request.tokens = {tokens(cells[first], "a prompt's tokens"), tokens(cells[first + 1], "an answer's tokens")};
  return request;
}

std::vector<Request> TraceFile::read(bool needs_times) {
  if (!next_line()) fail("the file is empty");
  const Kind& kind = this->kind();
  if (needs_times && kind.clock == Clock::none) fail("this trace has lengths but no times", "use it with {from: FILE}");
  std::vector<Request> requests;
  double first_s = 0;
  while (next_line()) {
    if (text_.empty()) continue;
    Request request = row(kind);
    if (requests.empty()) first_s = request.arrival_s;
    request.arrival_s -= first_s;
    if (!requests.empty() && request.arrival_s < requests.back().arrival_s) fail("this request comes before the one above it");
    requests.push_back(request);
  }
  if (requests.empty()) fail("the trace has no requests");
  return requests;
}

}  // namespace

std::vector<Request> read_request_trace(const Node& path, bool needs_times) {
  const std::string name = config::referenced_path(path);
  if (name.ends_with(".gz")) path.fail("packed traces are not read", "unpack it first: gunzip");
  TraceFile file(name);
  if (!file.readable()) path.fail("cannot read " + config::shown(name));
  return file.read(needs_times);
}

}  // namespace rehearse::sim
