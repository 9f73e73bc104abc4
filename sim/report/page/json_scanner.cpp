#include "sim/report/page/json_scanner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/input_error.hpp"

namespace rehearse::sim::page {
namespace {

constexpr int deepest = 64;  // objects and lists in one another
constexpr std::string_view blanks = " \t\r\n";

}  // namespace

bool JsonScanner::next_is(char c) {
  if (!rest_.empty() && blanks.find(rest_.front()) != std::string_view::npos)
    rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size()));
  return !rest_.empty() && rest_.front() == c;
}

void JsonScanner::expect(char c) {
  if (!next_is(c)) throw config::InputError(rest_.empty() ? "it ends too early" : fmt::format("'{}' where '{}' belongs", rest_.front(), c));
  rest_.remove_prefix(1);
}

std::string_view JsonScanner::raw_text() {
  expect('"');
  for (std::size_t end = rest_.find('"'); end != std::string_view::npos; end = rest_.find('"', end + 1)) {
    std::size_t escapes = end;  // those that stand in front of the quote
    while (escapes > 0 && rest_[escapes - 1] == '\\') --escapes;
    if ((end - escapes) % 2 != 0) continue;
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  throw config::InputError("a text does not end");
}

std::string JsonScanner::text() {
  if (!next_is('"')) throw config::InputError("something else where a text belongs");
  const std::string_view raw = raw_text();
  if (raw.find('\\') == std::string_view::npos) return std::string(raw);
  const nlohmann::json whole = nlohmann::json::parse(fmt::format("\"{}\"", raw), nullptr, false);
  if (!whole.is_string()) throw config::InputError("a text with an unknown escape");
  return whole.get<std::string>();
}

double JsonScanner::number() {
  static_cast<void>(next_is('-'));
  double value = 0;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (error != std::errc() || !std::isfinite(value)) throw config::InputError("something else where a number belongs");
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
  return value;
}

void JsonScanner::skip_list() {
  expect('[');
  for (bool first = true; !next_is(']'); first = false) {
    if (!first) expect(',');
    skip();
  }
  expect(']');
}

void JsonScanner::skip() {
  if (++depth_ > deepest) throw config::InputError(fmt::format("more than {} levels in one another", deepest));
  if (next_is('"')) {
    static_cast<void>(raw_text());
  } else if (next_is('{')) {
    object([this](std::string_view) { skip(); });
  } else if (next_is('[')) {
    skip_list();
  } else {  // a number, true, false, null
    const std::size_t end = std::min(rest_.find_first_of(",]} \t"), rest_.size());
    if (end == 0) throw config::InputError("a value is missing");
    rest_.remove_prefix(end);
  }
  --depth_;
}

void JsonScanner::end() {
  static_cast<void>(next_is(' '));
  if (!rest_.empty()) throw config::InputError(fmt::format("'{}' behind its end", rest_.front()));
}

}  // namespace rehearse::sim::page
