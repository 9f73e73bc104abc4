// Files that are not YAML, as texts with positions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "config/tree.hpp"

namespace rehearse::sim {

// A text and its lines. `fail` points at a place in it, line and column from 1, columns in characters.
struct TextFile {
  std::string text;
  std::shared_ptr<const config::Source> source;

  [[noreturn]] void fail(int line, int column, std::string_view message, std::string_view hint = {}) const;
  [[nodiscard]] config::Position at(int line, int column) const { return {source->name, line, column}; }
  [[nodiscard]] config::Position at_offset(std::size_t offset) const;  // of a byte
};

// Refuses what cannot be read, is larger than 4 MiB or is no text (not UTF-8, control characters).
[[nodiscard]] TextFile load_text_file(const std::string& path);
[[nodiscard]] TextFile text_file(std::string text, const std::string& path);

}  // namespace rehearse::sim
