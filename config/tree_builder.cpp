#include "config/tree_builder.hpp"

#include <fmt/format.h>

#include "config/text_check.hpp"

namespace rehearse::config {
namespace {

constexpr std::size_t deepest = 100;  // levels; real files have fewer than ten

}  // namespace

void TreeBuilder::refuse(const Position& where, std::string_view message, std::string_view hint) const {
  const bool known = where.line > 0 && static_cast<std::size_t>(where.line) <= source_->lines.size();
  throw InputError(where, message, known ? source_->lines[static_cast<std::size_t>(where.line) - 1] : "", hint);
}

void TreeBuilder::start_document(const Position& where) {
  if (++documents_ > 1) refuse(where, "a second document starts here; one file holds one document");
}

void TreeBuilder::null(const Position& where) {
  if (expects_key()) refuse(where, "a key is missing before ':'");
  add(leaf(Kind::null, where));
}

void TreeBuilder::scalar(const Position& where, std::string_view text, bool quoted) {
  if (expects_key()) return take_key(where, std::string(text), quoted);
  auto node = leaf(Kind::scalar, where);
  node->text = text;
  node->quoted = quoted;
  add(node);
}

void TreeBuilder::open(Kind kind, const Position& where) {
  if (expects_key()) refuse(where, "a key must be plain text", left_open);
  if (levels_.size() >= deepest) refuse(where, fmt::format("nested deeper than {} levels", deepest));
  levels_.push_back({leaf(kind, where), std::nullopt, {}, {}});
}

void TreeBuilder::close() {
  const auto node = levels_.back().node;
  levels_.pop_back();
  add(node);
}

void TreeBuilder::take_key(const Position& where, const std::string& key, bool quoted) {
  if (!quoted && key == "<<") refuse(where, "merge keys (<<) are not supported", "write the keys out");
  if (holds_control_characters(key)) refuse(where, "a key holds control characters");
  Level& level = levels_.back();
  const auto [first, added] = level.lines_of_keys.emplace(key, where.line);
  if (!added) refuse(where, fmt::format("duplicate key {} (first on line {})", shown(key), first->second));
  level.key = key;
  level.key_at = where;
}

// A node whose place is known and whose content is not yet.
std::shared_ptr<Node::Impl> TreeBuilder::leaf(Kind kind, const Position& where) const {
  auto node = std::make_shared<Node::Impl>();
  node->kind = kind;
  node->source = source_;
  node->line = where.line;
  node->column = where.column;
  node->path = path_;
  if (levels_.empty()) return node;
  const Level& level = levels_.back();
  if (!level.key) {
    node->path = join_path(level.node->path, level.node->children.size());
    return node;
  }
  node->path = join_path(level.node->path, *level.key);
  node->key = *level.key;
  node->key_line = level.key_at.line;
  node->key_column = level.key_at.column;
  if (kind == Kind::null) {  // nothing is written: parsers point at what follows
    node->line = node->key_line;
    node->column = node->key_column;
  }
  return node;
}

void TreeBuilder::add(const std::shared_ptr<Node::Impl>& node) {
  if (levels_.empty()) {
    root_ = node;
    return;
  }
  levels_.back().node->children.push_back(node);
  levels_.back().key.reset();
}

}  // namespace rehearse::config
