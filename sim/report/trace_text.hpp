// The Chrome trace event format as a stream of bytes: whole nanoseconds as microseconds, commas between events, a buffer of fixed size.
#pragma once

#include <fmt/format.h>

#include <iosfwd>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace rehearse::sim {

// When an event begins, and how long it is.
struct TraceSpan {
  long long start_ns = 0, duration_ns = 0;
  [[nodiscard]] long long end_ns() const { return start_ns + duration_ns; }
};

[[nodiscard]] long long nanoseconds(double seconds);

// Start and end are rounded each on its own, so that events which follow one another still do. Readers take ts from some origin of theirs
// and add dur, as doubles, which may exceed the ts of an event that begins just then: an event is a nanosecond shorter than it lasts. For
// the same reason one that ends together with events `around` it is a nanosecond shorter than the innermost of them.
[[nodiscard]] TraceSpan trace_span(long long start_ns, long long end_ns, int around = 0);

class TraceText {
 public:
  explicit TraceText(std::ostream& out) : out_(out) {}
  TraceText(const TraceText&) = delete;
  TraceText& operator=(const TraceText&) = delete;

  template <class... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
  }
  TraceText& operator<<(std::string_view text) {
    buffer_.append(text);
    return *this;
  }
  TraceText& operator<<(long long number) {
    const fmt::format_int digits(number);
    buffer_.append(digits.data(), digits.size());
    return *this;
  }
  TraceText& operator<<(char) = delete;  // would be taken for a number
  TraceText& operator<<(int number) { return *this << static_cast<long long>(number); }
  TraceText& microseconds(long long ns);  // with three decimals, the unit of the format

  // A new line of the array of events: every one but the first is preceded by a comma.
  TraceText& next_event();

  // {"ph":"M","name":KIND,...,"args":{KEY:VALUE}}; the value is JSON.
  void label(std::string_view kind, int pid, int tid, std::string_view key, std::string_view value);

  void flush();  // what has been written goes on: to be called at the end

 private:
  std::ostream& out_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace rehearse::sim
