#include "sim/serving/request_trace.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "config/reference.hpp"
#include "config/table.hpp"

namespace rehearse::sim {
namespace {

using config::Node;
using workloads::Request;

enum class Clock { none, seconds, milliseconds, date };
struct Kind {
  std::string_view header;  // how it begins
  Clock clock;
};
constexpr std::array<Kind, 4> kinds{{{"arrival_s,input_tokens,output_tokens", Clock::seconds},
                                     {"TIMESTAMP,ContextTokens,GeneratedTokens", Clock::date},
                                     {"timestamp_ms,input_tokens,output_tokens", Clock::milliseconds},
                                     {"num_prefill_tokens,num_decode_tokens", Clock::none}}};
constexpr double most_seconds = 1e9;
constexpr int most_trace_tokens = 100'000'000;

const Kind& kind_of(const config::Table& table) {
  const std::string titles = fmt::format("{},", fmt::join(table.titles(), ","));
  for (const Kind& kind : kinds) {
    if (titles.starts_with(fmt::format("{},", kind.header))) return kind;
  }
  std::vector<std::string_view> known;
  for (const Kind& kind : kinds) known.push_back(kind.header);
  table.fail("these are not the columns of a request trace", fmt::format("known: {}", fmt::join(known, "; ")));
}

// "2023-11-16 18:15:46.6805900": seconds since the month's day 0; a trace does not span months.
double seconds_of_date(const config::Table& table, std::size_t column) {
  const std::string_view text = table.cell(column);
  const auto part = [&](std::size_t from, std::size_t length, double low, double high) {
    const std::optional<double> value = from < text.size() ? config::number_in(text.substr(from, length)) : std::nullopt;
    if (!value || *value < low || *value > high) {
      table.fail_at(column, fmt::format("a time is a date and a time of day, not {}", config::shown(text)),
                    "write for example 2023-11-16 18:15:46.68");
    }
    return *value;
  };
  const double day = part(8, 2, 1, 31), hour = part(11, 2, 0, 23), minute = part(14, 2, 0, 59), second = part(17, text.npos, 0, 60);
  return ((day * 24 + hour) * 60 + minute) * 60 + second;
}

Request request_of(const config::Table& table, const Kind& kind) {
  Request request;
  if (kind.clock == Clock::date) request.arrival_s = seconds_of_date(table, 0);
  if (kind.clock == Clock::seconds) request.arrival_s = table.number(0, 0, most_seconds);
  if (kind.clock == Clock::milliseconds) request.arrival_s = table.number(0, 0, most_seconds * 1e3) / 1e3;
  const std::size_t first = kind.clock == Clock::none ? 0 : 1;
  const auto tokens = [&](std::size_t column) { return static_cast<int>(table.whole(column, 1, most_trace_tokens)); };
  request.tokens = {tokens(first), tokens(first + 1)};
  return request;
}

std::vector<Request> read_requests(config::Table& table, bool needs_times) {
  const Kind& kind = kind_of(table);
  if (needs_times && kind.clock == Clock::none) table.fail("this trace has lengths but no times", "use it with {from: FILE}");
  std::vector<Request> requests;
  double first_s = 0;
  while (table.next()) {
    Request request = request_of(table, kind);
    if (requests.empty()) first_s = request.arrival_s;
    request.arrival_s -= first_s;
    if (!requests.empty() && request.arrival_s < requests.back().arrival_s) table.fail("this request comes before the one above it");
    requests.push_back(request);
  }
  if (requests.empty()) table.fail("the trace has no requests");
  return requests;
}

}  // namespace

std::vector<Request> read_request_trace(const Node& path, bool needs_times) {
  const std::string name = config::referenced_path(path);
  if (name.ends_with(".gz")) path.fail("packed traces are not read", "unpack it first: gunzip");
  config::Table table(path);
  return read_requests(table, needs_times);
}

}  // namespace rehearse::sim
