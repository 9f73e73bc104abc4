#include "config/text_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rehearse::config {
namespace {

// Length of the UTF-8 sequence at `at`, or 0 when there is none (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  const std::size_t length = first >= 0xF0U ? 4 : first >= 0xE0U ? 3 : 2;
  if (first < 0xC2U || first > 0xF4U) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const bool overlong = (first == 0xE0U && byte(1) < 0xA0U) || (first == 0xF0U && byte(1) < 0x90U);
  const bool beyond = (first == 0xEDU && byte(1) > 0x9FU) || (first == 0xF4U && byte(1) > 0x8FU);
  return overlong || beyond ? 0 : length;
}

bool forbidden_control(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte == '\r') return at + 1 >= text.size() || text[at + 1] != '\n';
  return byte == 0x7FU || (byte < 0x20U && byte != '\t' && byte != '\n');
}

}  // namespace

bool holds_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f; });
}

Position position_of(std::string_view text, std::size_t at, const Source& source) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view line = before.substr(line_start);
  const auto characters = std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
  return {source.name, static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<int>(characters) + 1};
}

void check_encoding(const std::string& text, const Source& source) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) throw InputError(position_of(text, at, source), fmt::format("not a UTF-8 text: byte 0x{:02x}", byte));
    if (forbidden_control(text, at))
      throw InputError(position_of(text, at, source), fmt::format("not a text: control character 0x{:02x}", byte));
    at += length;
  }
}

namespace {

// In flow style (JSON) tabs between tokens are harmless.
bool is_flow(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && (text[first] == '{' || text[first] == '[');
}

void check_indentation(const Source& source) {
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::string& line = source.lines[i];
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::size_t tab = line.find('\t');
    if (tab >= first) continue;
    const Position where{source.name, static_cast<int>(i) + 1, static_cast<int>(tab) + 1};
    throw InputError(where, "a tab cannot indent", line, "use spaces");
  }
}

// JSON that was cut off would look to the YAML parser like a key without a value.
void check_json_ends(const std::string& text, const Source& source) {
  std::vector<std::size_t> open;  // brackets and braces, and the quote of a text
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      if (quoted) open.pop_back();
      if (!quoted) open.push_back(i);
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      open.push_back(i);
    } else if (!quoted && (c == '}' || c == ']') && !open.empty()) {
      open.pop_back();
    }
  }
  if (open.empty()) return;
  const Position where = position_of(text, open.back(), source);
  throw InputError(where, fmt::format("the file ends before this '{}' is closed", text[open.back()]),
                   source.lines[static_cast<std::size_t>(where.line) - 1], "is the file complete?");
}

}  // namespace

void check_text(const std::string& text, const Source& source) {
  check_encoding(text, source);
  if (source.name.ends_with(".json")) check_json_ends(text, source);
  if (!is_flow(text)) check_indentation(source);
}

}  // namespace rehearse::config
