// Requests of a CSV file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "config/table.hpp"
#include "sim/serving/request_reader.hpp"

namespace rehearse::sim {
namespace {

enum class Clock { none, seconds, milliseconds, date };
struct Kind {
  std::string_view header;  // how it begins
  Clock clock;
};
constexpr std::array<Kind, 4> kinds{{{"arrival_s,input_tokens,output_tokens", Clock::seconds},
                                     {"TIMESTAMP,ContextTokens,GeneratedTokens", Clock::date},
                                     {"timestamp_ms,input_tokens,output_tokens", Clock::milliseconds},
                                     {"num_prefill_tokens,num_decode_tokens", Clock::none}}};

const Kind& kind_of(const config::Table& table) {
  const std::string titles = fmt::format("{},", fmt::join(table.titles(), ","));
  for (const Kind& kind : kinds) {
    if (titles.starts_with(fmt::format("{},", kind.header))) return kind;
  }
  std::vector<std::string_view> known(kinds.size());
  std::ranges::transform(kinds, known.begin(), &Kind::header);
  table.fail("these are not the columns of a request trace", fmt::format("known: {}", fmt::join(known, "; ")));
}

class RequestTable final : public RequestReader {
 public:
  RequestTable(std::unique_ptr<std::istream> in, const std::string& name) : table_(std::move(in), name), kind_(kind_of(table_)) {
    for (const std::string_view title : {"blocks", "block_hashes_of_512_tokens"}) {
      if (const auto found = table_.column(title)) hashes_ = found;
    }
  }

  bool next(workloads::Request& request) override {
    if (!table_.next()) return false;
    request.arrival_s = arrival_s();
    const std::size_t first = has_times() ? 1 : 0;
    const auto tokens = [&](std::size_t column) { return static_cast<int>(table_.whole(column, 1, most_trace_tokens)); };
    request.tokens = {tokens(first), tokens(first + 1)};
    return true;
  }
  void fail(std::string_view why, std::string_view hint) const override { table_.fail(why, hint); }
  [[nodiscard]] bool has_times() const override { return kind_.clock != Clock::none; }
  [[nodiscard]] bool has_hashes() const override { return hashes_.has_value(); }
  // Numbers with blanks between them.
  [[nodiscard]] std::vector<std::uint64_t> hashes() const override {
    if (!hashes_) fail("this trace has no column of block hashes", "prefix_cache needs one: blocks");
    std::vector<std::uint64_t> out;
    const std::string_view text = table_.cell(*hashes_);
    for (const char *at = text.data(), *end = at + text.size(); at != end;) {
      const auto [behind, error] = std::from_chars(at, end, out.emplace_back());
      if (error != std::errc() || (behind != end && *behind != ' '))
        table_.fail_at(*hashes_, "block hashes are whole numbers with a blank between them");
      at = behind == end ? end : behind + 1;
    }
    return out;
  }

 private:
  [[nodiscard]] double arrival_s() const {
    if (kind_.clock == Clock::date) return seconds_of_date(0);
    if (kind_.clock == Clock::seconds) return table_.number(0, 0, most_trace_seconds);
    return kind_.clock == Clock::milliseconds ? table_.number(0, 0, most_trace_seconds * 1e3) / 1e3 : 0;
  }

  // "2023-11-16 18:15:46.6805900": seconds since the month's day 0; a trace does not span months.
  [[nodiscard]] double seconds_of_date(std::size_t column) const {
    const std::string_view text = table_.cell(column);
    const auto part = [&](std::size_t from, std::size_t length, double low, double high) {
      const std::optional<double> value = from < text.size() ? config::number_in(text.substr(from, length)) : std::nullopt;
      if (!value || *value < low || *value > high) {
        table_.fail_at(column, fmt::format("a time is a date and a time of day, not {}", config::shown(text)),
                       "write for example 2023-11-16 18:15:46.68");
      }
      return *value;
    };
    const double day = part(8, 2, 1, 31), hour = part(11, 2, 0, 23), minute = part(14, 2, 0, 59), second = part(17, text.npos, 0, 60);
    return ((day * 24 + hour) * 60 + minute) * 60 + second;
  }

  config::Table table_;
  const Kind& kind_;
  std::optional<std::size_t> hashes_;  // their column
};

}  // namespace

std::unique_ptr<RequestReader> requests_of_table(std::unique_ptr<std::istream> in, const std::string& name) {
  return std::make_unique<RequestTable>(std::move(in), name);
}

}  // namespace rehearse::sim
