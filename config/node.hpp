// YAML with positions: every getter refuses what does not fit, naming file, line and column. Built on yaml-cpp; yaml-cpp does not leak out.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/input_error.hpp"
#include "config/quantity.hpp"

namespace rehearse::config {

// A view of one YAML node. Cheap to copy; keeps its document alive. A default-constructed Node is absent.
class Node {
 public:
  Node() = default;

  // Loads a file or text. Refuses: unreadable file, syntax errors, duplicate keys (at any depth), several documents, anchors with merge
  // keys, an empty document. `name` is what positions show.
  static Node load_file(const std::string& path);
  static Node load_text(const std::string& text, const std::string& name);

  // Made by the program, to be written: a scalar (a quoted one is never a number, a truth value or null), a list.
  static Node scalar(std::string text, bool quoted = false);
  static Node list(const std::vector<Node>& items);

  [[nodiscard]] explicit operator bool() const { return impl_ != nullptr; }
  [[nodiscard]] bool is_map() const;
  [[nodiscard]] bool is_sequence() const;
  [[nodiscard]] bool is_scalar() const;  // plain or quoted text; not null
  [[nodiscard]] bool is_null() const;
  [[nodiscard]] Position where() const;
  [[nodiscard]] std::string path() const;      // dotted, from the document's root: "parallel.tp", "layers_per_stage[3]"; "" for the root
  [[nodiscard]] std::string file_dir() const;  // folder of the file, to resolve relative paths; "." for text

  // Maps.
  [[nodiscard]] std::optional<Node> find(std::string_view key) const;  // nothing when the key is absent; error when this is not a map
  [[nodiscard]] Node at(std::string_view key) const;                   // error "missing key 'x'" at this node
  [[nodiscard]] std::vector<std::string> keys() const;
  // Error at the first other key, with a suggestion; `elsewhere`: paths at which a key of that name is known.
  using Elsewhere = std::function<std::vector<std::string>(std::string_view)>;
  void allow_keys(const std::vector<std::string>& known, const Elsewhere& elsewhere = {}) const;

  // Sequences.
  [[nodiscard]] std::vector<Node> items() const;

  // Scalars. Each refuses text of another type; bounds are inclusive and named in the error. Integers are decimal only
  // (no octal, no hex; 1e6 and 15e12 are accepted when they are whole).
  [[nodiscard]] std::string as_string() const;
  [[nodiscard]] std::int64_t as_int(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] double as_number(double low, double high) const;
  [[nodiscard]] bool as_bool() const;  // true | false only
  [[nodiscard]] double as_quantity(Dimension dimension, double low = 0.0) const;
  [[nodiscard]] std::string as_choice(const std::vector<std::string>& choices) const;  // unknown: lists them, suggests the nearest

  // Throws InputError at this node, with its source line.
  [[noreturn]] void fail(std::string_view message, std::string_view hint = {}) const;
  // The same at the key of this node in its parent map (for "unknown key" and for complaints about a field as a whole).
  [[noreturn]] void fail_at_key(std::string_view message, std::string_view hint = {}) const;

  // Sets (or adds) the value at a dotted path below this node, as `--set parallel.tp=4`: `value` is parsed as YAML (flow style allowed).
  // null takes the key away, and is refused where there is none.
  // Later errors about it are reported at position {"--set parallel.tp=4", 1, column}. Refuses a path through a scalar.
  void set(std::string_view dotted_path, std::string_view value);

  // Sets (or adds) a key of this map to another node, which keeps its positions.
  void set_child(std::string_view key, const Node& child);

  // The same map without that key.
  [[nodiscard]] Node without(std::string_view key) const;

  // What a dotted path below this node leads to; nothing where there is none.
  [[nodiscard]] std::optional<Node> find_path(std::string_view dotted_path) const;

  // YAML text of this node: block style, keys in file order, strings quoted only where needed. Stable byte for byte.
  [[nodiscard]] std::string to_yaml() const;

  struct Impl;

 private:
  explicit Node(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
  friend struct NodeAccess;
};

// A node's content on one line, for people: "full", "{modules: [mlp]}".
[[nodiscard]] std::string one_line(const Node& node);

}  // namespace rehearse::config
