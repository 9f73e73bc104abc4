#include "sim/report/trace_text.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>

namespace rehearse::sim {
namespace {

constexpr std::size_t flush_bytes = 1 << 20;

}  // namespace

long long nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

TraceSpan trace_span(long long start_ns, long long end_ns, int around) { return {start_ns, std::max(0LL, end_ns - start_ns - 1 - around)}; }

TraceText& TraceText::microseconds(long long ns) {
  *this << ns / 1000;
  const auto rest = static_cast<int>(ns % 1000);
  const char decimals[] = {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                           static_cast<char>('0' + rest % 10)};
  buffer_.append(decimals, sizeof decimals);
  return *this;
}

TraceText& TraceText::next_event() {
  if (buffer_.size() > flush_bytes) flush();
  buffer_.append(first_ ? "\n" : ",\n");
  first_ = false;
  return *this;
}

void TraceText::label(std::string_view kind, int pid, int tid, std::string_view key, std::string_view value) {
  next_event().append(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", kind, pid, tid, key, value);
}

void TraceText::flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace rehearse::sim
