// Node -> YAML text in block style.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/tree.hpp"
#include "config/yaml_text.hpp"

namespace rehearse::config {
namespace {

using Kind = Node::Impl::Kind;

constexpr std::size_t indent_width = 2;

// Would this text, written without quotes, be read as the same text?
bool plain_safe(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (text == "<<" || text == "-" || text == "?" || text.starts_with("---") || text.starts_with("...")) return false;
  if (std::string_view(":,[]{}#&*!|>'\"%@`").find(text.front()) != std::string_view::npos) return false;
  if (text.starts_with("- ") || text.starts_with("? ") || text.find(": ") != std::string_view::npos) return false;
  if (text.find(" #") != std::string_view::npos) return false;
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20U || c == 0x7F; });
}

// Would it, without quotes, be read as a number, a truth value or null?
bool looks_typed(std::string_view text) {
  static constexpr std::string_view words[] = {"true", "false", "null", "Null", "NULL", "~"};
  if (std::find(std::begin(words), std::end(words), text) != std::end(words)) return true;
  const bool numeric = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  return numeric && text.find_first_of("0123456789") != std::string_view::npos;
}

std::string scalar_text(const Node::Impl& node) {
  if (node.kind == Kind::null) return "null";
  if (node.kind == Kind::map) return "{}";
  if (node.kind == Kind::sequence) return "[]";
  return plain_safe(node.text) && !(node.quoted && looks_typed(node.text)) ? node.text : yaml_text(node.text);
}

std::string key_text(const std::string& key) {
  const bool null_word = key == "~" || key == "null" || key == "Null" || key == "NULL";
  return plain_safe(key) && !null_word ? key : yaml_text(key);
}

void emit(const Node::Impl& node, std::size_t indent, bool first_line_is_indented, std::string& out) {
  if (node.children.empty()) {
    out += scalar_text(node) + "\n";
    return;
  }
  for (const Tree& child : node.children) {
    if (!first_line_is_indented) out.append(indent, ' ');
    first_line_is_indented = false;
    const bool nested = !child->children.empty();
    out += node.kind == Kind::sequence ? "-" : key_text(child->key) + ":";
    out += nested && node.kind == Kind::map ? "\n" : " ";
    emit(*child, indent + indent_width, nested && node.kind == Kind::sequence, out);
  }
}

}  // namespace

std::string yaml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20U || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string one_line(const Node& node) {
  if (node.is_scalar()) return node.as_string();
  std::vector<std::string> parts;
  if (node.is_map()) {
    for (const std::string& key : node.keys()) parts.push_back(key + ": " + one_line(node.at(key)));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  for (const Node& item : node.items()) parts.push_back(one_line(item));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

std::string Node::to_yaml() const {
  std::string out;
  if (impl_) emit(*impl_, 0, true, out);
  return out;
}

}  // namespace rehearse::config
