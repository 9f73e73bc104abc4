#include "config/input_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rehearse::config {
namespace {

constexpr std::size_t widest_excerpt = 120;  // columns of a source line worth showing on a terminal

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20U || byte == 0x7F; }

// Byte offset of the character in column `column` (from 1); the end when the line is shorter.
std::size_t offset_of_column(std::string_view line, int column) {
  std::size_t offset = 0;
  for (int seen = 1; offset < line.size() && seen < column; ++seen) {
    ++offset;
    while (offset < line.size() && continues_character(line[offset])) ++offset;
  }
  return offset;
}

struct Excerpt {
  std::string text;
  std::string padding;  // as wide as what stands before the caret; tabs stay tabs
};

Excerpt excerpt(std::string_view line, int column) {
  const std::size_t target = offset_of_column(line, column);
  std::size_t begin = line.size() > widest_excerpt && target > widest_excerpt / 2 ? target - widest_excerpt / 2 : 0;
  while (begin < target && continues_character(line[begin])) ++begin;
  std::size_t end = std::min(line.size(), begin + widest_excerpt);
  while (end < line.size() && continues_character(line[end])) ++end;

  Excerpt out{begin > 0 ? "..." : "", begin > 0 ? "   " : ""};
  for (const char byte : line.substr(begin, end - begin)) out.text += is_control(byte) && byte != '\t' ? '?' : byte;
  if (end < line.size()) out.text += "...";
  for (const char byte : line.substr(begin, target - begin)) {
    if (!continues_character(byte)) out.padding += byte == '\t' ? '\t' : ' ';
  }
  return out;
}

std::string prefix(const Position& where) {
  if (where.file.empty()) return "error: ";
  if (where.line <= 0) return fmt::format("{}: error: ", where.file);
  if (where.column <= 0) return fmt::format("{}:{}: error: ", where.file, where.line);
  return fmt::format("{}:{}:{}: error: ", where.file, where.line, where.column);
}

std::string whole(const Position& where, std::string_view message, std::string_view source_line, std::string_view hint) {
  std::string out = prefix(where) + std::string(message);
  if (!source_line.empty() && where.line > 0) {
    const Excerpt shown = excerpt(source_line, where.column);
    out += fmt::format("\n{:>5} | {}", where.line, shown.text);
    if (where.column > 0) out += fmt::format("\n{:>5} | {}^", "", shown.padding);
  }
  if (!hint.empty()) out += fmt::format("\n  {}", hint);
  return out;
}

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other, each character edited once.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> cost(from.size() + 1, std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= to.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[from.size()][to.size()];
}

}  // namespace

InputError::InputError(const Position& where, std::string_view message, std::string_view source_line, std::string_view hint)
    : std::runtime_error(whole(where, message, source_line, hint)), where_(where), message_(message), hint_(hint) {}

InputError::InputError(std::string_view message, std::string_view hint) : InputError(Position{}, message, {}, hint) {}

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::size_t end = std::min(text.size(), longest);
  while (end < text.size() && end > 0 && continues_character(text[end])) --end;
  std::string out = "'";
  for (const char c : text.substr(0, end)) out += is_control(c) ? '?' : c;
  return out + (end < text.size() ? "...'" : "'");
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t least_begun = 4;  // letters: fewer begin too much
  std::size_t best = 1 + word.size() / 3;
  std::string found;
  if (word.size() >= least_begun) {
    const auto begun = std::ranges::find_if(candidates, [&](const std::string& candidate) { return candidate.starts_with(word); });
    if (begun != candidates.end()) found = *begun, best = 2;
  }
  for (const std::string& candidate : candidates) {
    const std::size_t gap = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (gap > best) continue;  // the distance is at least the difference of the lengths; spares junk input the full table
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best || (found.empty() && distance == best)) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates, const std::vector<std::string>& instead) {
  const std::string meant = instead.empty() ? nearest(word, candidates) : fmt::format("{}", fmt::join(instead, "' or '"));
  const std::string known = fmt::format("known: {}", candidates.empty() ? "none" : fmt::format("{}", fmt::join(candidates, ", ")));
  return meant.empty() ? known : fmt::format("did you mean '{}'? {}", meant, known);
}

}  // namespace rehearse::config
