#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "config/open_file.hpp"
#include "config/tree.hpp"

namespace rehearse::config {
namespace {

constexpr std::size_t largest_file = std::size_t{4} << 20U;  // bytes; ready-made and measured files stay below one MiB

}  // namespace

std::string read_file_text(const std::string& path) {
  std::ifstream in = open_file(path);
  std::string text;
  std::array<char, std::size_t{1} << 16U> part{};
  while (in && text.size() <= largest_file) {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) throw InputError(fmt::format("cannot read '{}': {}", path, std::strerror(EIO)));
  if (text.size() > largest_file) throw InputError(fmt::format("cannot read '{}': larger than {} MiB", path, largest_file >> 20U));
  return text;
}

namespace {

Node parse(std::string text, const std::string& name, const std::string& dir) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  const auto source = std::make_shared<const Source>(Source{name, dir, split_lines_of(text)});
  return NodeAccess::make(parse_tree(text, source));
}

}  // namespace

Node Node::load_file(const std::string& path) {
  const std::string dir = std::filesystem::path(path).parent_path().string();
  return parse(read_file_text(path), path, dir.empty() ? "." : dir);
}

Node Node::load_text(const std::string& text, const std::string& name) { return parse(text, name, "."); }

}  // namespace rehearse::config
