// A parser's events -> Tree. What parsers let pass silently (duplicate keys, merge keys, further documents) is refused here.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/input_error.hpp"
#include "config/tree.hpp"

namespace rehearse::config {

inline constexpr std::string_view left_open = "is a bracket or a brace left open?";

// Refusals throw InputError. Positions are of the source; keys and values come in the order in which they are written.
class TreeBuilder {
 public:
  using Kind = Node::Impl::Kind;

  // The root's path is `path`.
  TreeBuilder(std::shared_ptr<const Source> source, std::string path) : source_(std::move(source)), path_(std::move(path)) {}

  void start_document(const Position& where);
  void null(const Position& where);  // with nothing written, the value of a key stands where the key does
  void scalar(const Position& where, std::string_view text, bool quoted);
  void open(Kind kind, const Position& where);  // a map or a sequence
  void close();

  [[nodiscard]] bool in_sequence() const { return !levels_.empty() && levels_.back().node->kind == Kind::sequence; }
  [[nodiscard]] Tree root() const { return root_; }  // null before any node has ended
  [[nodiscard]] const Source& source() const { return *source_; }
  [[noreturn]] void refuse(const Position& where, std::string_view message, std::string_view hint = {}) const;

 private:
  // A map or list being read.
  struct Level {
    std::shared_ptr<Node::Impl> node;
    std::optional<std::string> key;  // read, its value not yet
    Position key_at;
    std::map<std::string, int> lines_of_keys;
  };

  [[nodiscard]] bool expects_key() const { return !levels_.empty() && levels_.back().node->kind == Kind::map && !levels_.back().key; }
  void take_key(const Position& where, const std::string& key, bool quoted);
  [[nodiscard]] std::shared_ptr<Node::Impl> leaf(Kind kind, const Position& where) const;
  void add(const std::shared_ptr<Node::Impl>& node);

  std::shared_ptr<const Source> source_;
  std::string path_;
  std::vector<Level> levels_;
  Tree root_;
  int documents_ = 0;
};

}  // namespace rehearse::config
