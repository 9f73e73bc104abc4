#include "config/node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/tree.hpp"

namespace rehearse::config {
namespace {

using Kind = Node::Impl::Kind;

std::string_view line_text(const Node::Impl& node, int line) {
  if (!node.source) return "";  // made by the program
  const auto& lines = node.source->lines;
  return line > 0 && static_cast<std::size_t>(line) <= lines.size() ? std::string_view(lines[static_cast<std::size_t>(line) - 1]) : "";
}

const Node::Impl& require_map(const Node& node) {
  if (!node.is_map()) node.fail(fmt::format("{} must be a mapping (key: value), not {}", name_of(node), content_of(node)));
  return *NodeAccess::tree(node);
}

}  // namespace

std::string name_of(const Node& node) { return node.path().empty() ? "the document" : node.path(); }

std::string content_of(const Node& node) {
  if (!node) return "absent";
  if (node.is_null()) return "empty";
  if (node.is_map()) return "a mapping";
  if (node.is_sequence()) return "a list";
  const Tree& tree = NodeAccess::tree(node);
  return (tree->quoted ? "the text " : "") + shown(tree->text);
}

Node Node::scalar(std::string text, bool quoted) {
  auto tree = std::make_shared<Impl>();
  tree->kind = Kind::scalar;
  tree->text = std::move(text);
  tree->quoted = quoted;
  return Node(tree);
}

Node Node::list(const std::vector<Node>& items) {
  auto tree = std::make_shared<Impl>();
  tree->kind = Kind::sequence;
  for (const Node& item : items) tree->children.push_back(item.impl_);
  return Node(tree);
}

bool Node::is_map() const { return impl_ && impl_->kind == Kind::map; }
bool Node::is_sequence() const { return impl_ && impl_->kind == Kind::sequence; }
bool Node::is_scalar() const { return impl_ && impl_->kind == Kind::scalar; }
bool Node::is_null() const { return impl_ && impl_->kind == Kind::null; }

Position Node::where() const { return impl_ && impl_->source ? Position{impl_->source->name, impl_->line, impl_->column} : Position{}; }
std::string Node::path() const { return impl_ ? impl_->path : ""; }
std::string Node::file_dir() const { return impl_ && impl_->source ? impl_->source->dir : "."; }

std::optional<Node> Node::find(std::string_view key) const {
  const auto& children = require_map(*this).children;
  const auto it = std::find_if(children.begin(), children.end(), [&](const Tree& child) { return child->key == key; });
  if (it == children.end()) return std::nullopt;
  return Node(*it);
}

std::optional<Node> Node::find_path(std::string_view path) const {
  std::optional<Node> node = *this;
  while (node && !path.empty()) {
    const std::size_t dot = path.find('.');
    node = node->is_map() ? node->find(path.substr(0, dot)) : std::nullopt;
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
  }
  return node;
}

Node Node::at(std::string_view key) const {
  if (auto child = find(key)) return *child;
  fail(fmt::format("missing key '{}'{}", key, impl_->path.empty() ? "" : " in " + impl_->path));
}

std::vector<std::string> Node::keys() const {
  std::vector<std::string> out;
  for (const Tree& child : require_map(*this).children) out.push_back(child->key);
  return out;
}

void Node::allow_keys(const std::vector<std::string>& known, const Elsewhere& elsewhere) const {
  for (const Tree& child : require_map(*this).children) {
    if (std::find(known.begin(), known.end(), child->key) != known.end()) continue;
    Node(child).fail_at_key(fmt::format("unknown key {}{}", shown(child->key), impl_->path.empty() ? "" : " in " + impl_->path),
                            suggestion(child->key, known, elsewhere ? elsewhere(child->key) : std::vector<std::string>{}));
  }
}

std::vector<Node> Node::items() const {
  if (!is_sequence()) fail(fmt::format("{} must be a list, not {}", name_of(*this), content_of(*this)));
  std::vector<Node> out;
  for (const Tree& child : impl_->children) out.push_back(Node(child));
  return out;
}

void Node::fail(std::string_view message, std::string_view hint) const {
  if (!impl_) throw InputError(message, hint);
  throw InputError(where(), message, line_text(*impl_, impl_->line), hint);
}

void Node::fail_at_key(std::string_view message, std::string_view hint) const {
  if (!impl_ || impl_->key_line == 0) fail(message, hint);
  throw InputError({impl_->source->name, impl_->key_line, impl_->key_column}, message, line_text(*impl_, impl_->key_line), hint);
}

}  // namespace rehearse::config
