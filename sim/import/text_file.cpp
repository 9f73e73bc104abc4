#include "sim/import/text_file.hpp"

#include <filesystem>

#include "config/text_check.hpp"

namespace rehearse::sim {

void TextFile::fail(int line, int column, std::string_view message, std::string_view hint) const {
  const bool known = line > 0 && static_cast<std::size_t>(line) <= source->lines.size();
  throw config::InputError(at(line, column), message, known ? source->lines[static_cast<std::size_t>(line) - 1] : "", hint);
}

config::Position TextFile::at_offset(std::size_t offset) const { return config::position_of(text, std::min(offset, text.size()), *source); }

TextFile text_file(std::string text, const std::string& path) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  const std::string dir = std::filesystem::path(path).parent_path().string();
  const auto source = std::make_shared<const config::Source>(config::Source{path, dir.empty() ? "." : dir, config::split_lines_of(text)});
  config::check_encoding(text, *source);
  return {std::move(text), source};
}

TextFile load_text_file(const std::string& path) { return text_file(config::read_file_text(path), path); }

}  // namespace rehearse::sim
