// How a Node is kept: an immutable tree that knows where each of its parts was written. Edits copy the path from the root and share the
// rest.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/node.hpp"

namespace rehearse::config {

struct Source {
  std::string name;                // what positions show
  std::string dir = ".";           // folder that relative paths start from
  std::vector<std::string> lines;  // without their ends
};

struct Node::Impl {
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  bool quoted = false;  // text in quotes or a block scalar: never a number, a truth value or null
  std::string text;     // scalar
  std::vector<std::shared_ptr<const Impl>> children;

  std::shared_ptr<const Source> source;
  int line = 0, column = 0;  // from 1; columns count characters

  std::string path;                  // from the document's root
  std::string key;                   // in the parent map
  int key_line = 0, key_column = 0;  // 0: not the value of a key
};

using Tree = std::shared_ptr<const Node::Impl>;

struct NodeAccess {
  static Node make(Tree tree) { return Node(std::move(tree)); }
  static const Tree& tree(const Node& node) { return node.impl_; }
};

// The path of a child of the node at `path`.
[[nodiscard]] std::string join_path(const std::string& path, const std::string& key);
[[nodiscard]] std::string join_path(const std::string& path, std::size_t index);

// Parses `text`, the part of source's first line that follows the first `skipped_bytes` bytes and everything below. The root's path is
// `path`.
[[nodiscard]] Tree parse_tree(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes = 0,
                              const std::string& path = "");

// The same by yaml-cpp alone, of a text that has passed check_text(): it knows all of YAML, and how to complain.
[[nodiscard]] Tree parse_with_yaml_cpp(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes = 0,
                                       const std::string& path = "");

// The bytes of a file. Refuses folders, what cannot be read and more than 4 MiB.
[[nodiscard]] std::string read_file_text(const std::string& path);

[[nodiscard]] std::vector<std::string> split_lines_of(const std::string& text);

// What the reader of a message calls this node and what it holds: "parallel.tp", "'eight'", "a list".
[[nodiscard]] std::string name_of(const Node& node);
[[nodiscard]] std::string content_of(const Node& node);

}  // namespace rehearse::config
