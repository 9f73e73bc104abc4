// yaml-cpp's events -> Tree. Everything that yaml-cpp lets pass silently (duplicate keys, merge keys, tags, further documents) is refused
// here.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "config/plain_yaml.hpp"
#include "config/text_check.hpp"
#include "config/tree.hpp"

namespace rehearse::config {
namespace {

using Kind = Node::Impl::Kind;

constexpr std::string_view left_open = "is a bracket or a brace left open?";
constexpr std::size_t deepest = 100;  // levels; real files have fewer than ten

// A map or list being read.
struct Level {
  std::shared_ptr<Node::Impl> node;
  std::optional<std::string> key;  // read, its value not yet
  Position key_at;
  std::map<std::string, int> lines_of_keys;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const Source> source, std::size_t skipped_bytes, std::string path)
      : source_(std::move(source)), skipped_bytes_(skipped_bytes), path_(std::move(path)) {}

  [[nodiscard]] Tree root() const { return root_; }

  // yaml-cpp counts lines from 0 and columns in bytes from 0; a null mark means that it does not know.
  [[nodiscard]] Position position(const YAML::Mark& mark) {
    if (mark.is_null() || mark.line < 0) return {source_->name, 0, 0};
    const std::size_t bytes = static_cast<std::size_t>(mark.column) + (mark.line == 0 ? skipped_bytes_ : 0);
    return {source_->name, mark.line + 1, characters_before(mark.line + 1, bytes) + 1};
  }

  [[noreturn]] void refuse(const Position& where, std::string_view message, std::string_view hint = {}) const {
    throw InputError(where, message, line_text(where.line), hint);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(position(mark), "a second document starts here; one file holds one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_plain(mark, "?", anchor);
    if (expects_key()) refuse(position(mark), "a key is missing before ':'");
    add(leaf(Kind::null, mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse_alias(mark); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    check_plain(mark, tag, anchor);
    check_quotes(mark);
    if (expects_key()) return take_key(position(mark), value, tag != "!");
    auto node = leaf(Kind::scalar, mark);
    node->text = value;
    node->quoted = tag == "!";
    add(node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) override {
    open(Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  [[nodiscard]] const std::string& line_text(int line) const {
    static const std::string none;
    const bool known = line > 0 && static_cast<std::size_t>(line) <= source_->lines.size();
    return known ? source_->lines[static_cast<std::size_t>(line) - 1] : none;
  }

  // Counted on from the last place asked for, so that a long line costs its length once.
  [[nodiscard]] int characters_before(int line, std::size_t bytes) {
    const std::string& text = line_text(line);
    if (line != counted_.line || bytes < counted_.bytes) counted_ = {line, 0, 0};
    for (; counted_.bytes < std::min(bytes, text.size()); ++counted_.bytes) {
      if ((static_cast<unsigned char>(text[counted_.bytes]) & 0xC0U) != 0x80U) ++counted_.characters;
    }
    return counted_.characters;
  }

  [[noreturn]] void refuse_alias(const YAML::Mark& mark) {
    refuse(position(mark), "anchors and aliases (&name, *name) are not supported", "write the value out, or quote the text");
  }

  // yaml-cpp reads on over the ends of lines, and lets the end of the file close a quote.
  void check_quotes(const YAML::Mark& mark) {
    if (mark.is_null() || mark.line < 0) return;
    const std::string& line = line_text(mark.line + 1);
    std::size_t at = static_cast<std::size_t>(mark.column) + (mark.line == 0 ? skipped_bytes_ : 0);
    if (at >= line.size() || (line[at] != '\'' && line[at] != '"')) return;
    const char quote = line[at];
    for (++at; at < line.size(); ++at) {
      if (quote == '"' && line[at] == '\\') {
        ++at;
      } else if (line[at] == quote && !(quote == '\'' && at + 1 < line.size() && line[at + 1] == quote)) {
        return;
      } else if (line[at] == quote) {
        ++at;  // two single quotes stand for one
      }
    }
    refuse(position(mark), "this quote is not closed on its line", "close it, or leave it out");
  }

  void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse_alias(mark);
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(position(mark), "tags (!name) are not supported", "remove the tag, or quote the text");
  }

  [[nodiscard]] bool expects_key() const { return !levels_.empty() && levels_.back().node->kind == Kind::map && !levels_.back().key; }

  void take_key(const Position& where, const std::string& key, bool plain) {
    if (plain && key == "<<") refuse(where, "merge keys (<<) are not supported", "write the keys out");
    Level& level = levels_.back();
    const auto [first, added] = level.lines_of_keys.emplace(key, where.line);
    if (!added) refuse(where, fmt::format("duplicate key {} (first on line {})", shown(key), first->second));
    level.key = key;
    level.key_at = where;
  }

  // A node whose place is known and whose content is not yet.
  [[nodiscard]] std::shared_ptr<Node::Impl> leaf(Kind kind, const YAML::Mark& mark) {
    auto node = std::make_shared<Node::Impl>();
    const Position where = position(mark);
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
    if (kind == Kind::null) {  // nothing is written: yaml-cpp points at what follows
      node->line = node->key_line;
      node->column = node->key_column;
    }
    return node;
  }

  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_plain(mark, tag, anchor);
    if (expects_key()) refuse(position(mark), "a key must be plain text", left_open);
    if (levels_.size() >= deepest) refuse(position(mark), fmt::format("nested deeper than {} levels", deepest));
    levels_.push_back({leaf(kind, mark), std::nullopt, {}, {}});
  }

  void close() {
    const auto node = levels_.back().node;
    levels_.pop_back();
    add(node);
  }

  void add(const std::shared_ptr<Node::Impl>& node) {
    if (levels_.empty()) {
      root_ = node;
      return;
    }
    levels_.back().node->children.push_back(node);
    levels_.back().key.reset();
  }

  std::shared_ptr<const Source> source_;
  std::size_t skipped_bytes_;
  std::string path_;
  std::vector<Level> levels_;
  Tree root_;
  int documents_ = 0;
  struct {
    int line = 0;
    std::size_t bytes = 0;
    int characters = 0;
  } counted_;
};

}  // namespace

std::string join_path(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

std::string join_path(const std::string& path, std::size_t index) { return fmt::format("{}[{}]", path, index); }

std::vector<std::string> split_lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const bool carriage_return = end > start && text[end - 1] == '\r';
    lines.emplace_back(text, start, end - start - (carriage_return ? 1 : 0));
    start = end + 1;
  }
  return lines;
}

Tree parse_tree(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes, const std::string& path) {
  check_text(text, *source);
  if (Tree tree = parse_plain(text, source, skipped_bytes, path); tree && tree->kind != Kind::null) return tree;
  return parse_with_yaml_cpp(text, source, skipped_bytes, path);
}

Tree parse_with_yaml_cpp(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes,
                         const std::string& path) {
  TreeBuilder builder(source, skipped_bytes, path);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& problem) {
    const bool open = problem.msg.find("flow not found") != std::string::npos;
    builder.refuse(builder.position(problem.mark), "not valid YAML: " + problem.msg, open ? left_open : "");
  }
  const Tree root = builder.root();
  if (!root || root->kind == Kind::null) throw InputError(Position{source->name, 0, 0}, "the document is empty");
  return root;
}

}  // namespace rehearse::config
