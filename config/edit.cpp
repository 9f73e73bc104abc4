// Overrides: --set key=value.
#include <fmt/format.h>

#include <algorithm>

#include "config/tree.hpp"

namespace rehearse::config {
namespace {

using Kind = Node::Impl::Kind;

// One override on its way into a tree.
struct Edit {
  std::string path;  // dotted
  std::shared_ptr<const Source> source;
  Tree value;

  [[nodiscard]] bool removes() const { return value->kind == Kind::null; }
  [[noreturn]] void refuse(std::string_view message, std::string_view hint = {}) const {
    throw InputError({source->name, 1, 1}, message, source->lines.front(), hint);
  }
};

Edit make_edit(std::string_view dotted_path, std::string_view value) {
  const std::string text = fmt::format("{}={}", dotted_path, value);
  const auto lines = split_lines_of(text);
  Edit edit{std::string(dotted_path), std::make_shared<const Source>(Source{"--set " + text, ".", lines}), nullptr};
  if (value.find_first_not_of(" \t") == std::string_view::npos) edit.refuse("a value is missing after '='");
  if (value == "null" || value == "~") {
    edit.value = std::make_shared<const Node::Impl>();
    return edit;
  }
  edit.value = parse_tree(std::string(value), edit.source, dotted_path.size() + 1, edit.path);
  return edit;
}

// How a mapping takes the place of what stands at `path` and is none; "" where `rest` lies deeper than one key.
std::string hint_to_replace(const std::string& path, const std::string& rest, const Edit& edit) {
  if (path.empty() || edit.removes() || rest.find('.') != std::string::npos) return "";
  const std::string& written = edit.source->lines.front();
  return fmt::format("to put a mapping there: --set '{}={{{}: {}}}'", path, rest, written.substr(edit.path.size() + 1));
}

// A fresh copy of the map at `tree` (an empty one when there is nothing yet), to be changed.
std::shared_ptr<Node::Impl> editable_map(const Tree& tree, const Edit& edit, const std::string& path) {
  if (tree && tree->kind == Kind::map) return std::make_shared<Node::Impl>(*tree);
  if (tree && tree->kind != Kind::null) {
    const std::string rest = path.empty() ? edit.path : edit.path.substr(path.size() + 1);
    edit.refuse(fmt::format("cannot set '{}': {} is {}, not a mapping", edit.path, path.empty() ? "the document" : path,
                            content_of(NodeAccess::make(tree))),
                hint_to_replace(path, rest, edit));
  }
  auto map = std::make_shared<Node::Impl>();
  map->kind = Kind::map;
  map->source = edit.source;
  map->line = map->column = 1;
  map->path = path;
  return map;
}

std::shared_ptr<Node::Impl> keyed(const Tree& value, const std::string& key, const Edit& edit, std::size_t key_offset) {
  auto copy = std::make_shared<Node::Impl>(*value);
  copy->key = key;
  if (copy->source == edit.source) {
    copy->key_line = 1;
    copy->key_column = static_cast<int>(key_offset) + 1;
  }
  return copy;
}

[[noreturn]] void refuse_removal(const Node::Impl& map, const std::string& key, const Edit& edit) {
  std::vector<std::string> known;
  for (const Tree& child : map.children) known.push_back(child->key);
  edit.refuse(fmt::format("there is no {} to take away", join_path(map.path, key)), suggestion(key, known));
}

// `tree` with the edit applied to what lies from byte `offset` of the edit's path on.
Tree apply(const Tree& tree, const Edit& edit, std::size_t offset) {
  const std::size_t dot = edit.path.find('.', offset);
  const std::string key = edit.path.substr(offset, dot == std::string::npos ? dot : dot - offset);
  if (key.empty()) edit.refuse(fmt::format("'{}' is not a path of keys (write parallel.tp)", edit.path));

  const auto map = editable_map(tree, edit, offset == 0 ? "" : edit.path.substr(0, offset - 1));
  auto& children = map->children;
  const auto it = std::find_if(children.begin(), children.end(), [&](const Tree& child) { return child->key == key; });
  if (edit.removes() && it == children.end()) refuse_removal(*map, key, edit);
  if (edit.removes() && dot == std::string::npos) {
    children.erase(it);
    return map;
  }
  const Tree before = it == children.end() ? nullptr : *it;
  const Tree after = keyed(dot == std::string::npos ? edit.value : apply(before, edit, dot + 1), key, edit, offset);
  if (it == children.end()) {
    children.push_back(after);
  } else {
    *it = after;
  }
  return map;
}

}  // namespace

void Node::set(std::string_view dotted_path, std::string_view value) { impl_ = apply(impl_, make_edit(dotted_path, value), 0); }

void Node::set_child(std::string_view key, const Node& child) {
  auto map = impl_ ? std::make_shared<Impl>(*impl_) : std::make_shared<Impl>();
  if (!impl_) map->kind = Kind::map;
  auto value = std::make_shared<Impl>(*child.impl_);
  value->key = key;
  const auto it = std::find_if(map->children.begin(), map->children.end(), [&](const Tree& old) { return old->key == key; });
  if (it == map->children.end()) {
    map->children.push_back(value);
  } else {
    *it = value;
  }
  impl_ = map;
}

Node Node::without(std::string_view key) const {
  if (!is_map()) return *this;
  auto copy = std::make_shared<Impl>(*impl_);
  std::erase_if(copy->children, [&](const Tree& child) { return child->key == key; });
  return Node(copy);
}

}  // namespace rehearse::config
