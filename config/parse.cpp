#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "config/parse_quickly.hpp"
#include "config/text_check.hpp"
#include "config/tree_builder.hpp"

namespace rehearse::config {
namespace {

// yaml-cpp's events, with what it lets pass and the TreeBuilder cannot see: anchors, tags, quotes left open.
class Events : public YAML::EventHandler {
 public:
  Events(const std::shared_ptr<const Source>& source, std::size_t skipped_bytes, const std::string& path)
      : builder_(source, path), skipped_bytes_(skipped_bytes) {}

  [[nodiscard]] const TreeBuilder& builder() const { return builder_; }

  // yaml-cpp counts lines from 0 and columns in bytes from 0; a null mark means that it does not know.
  [[nodiscard]] Position position(const YAML::Mark& mark) {
    const std::string& name = builder_.source().name;
    if (mark.is_null() || mark.line < 0) return {name, 0, 0};
    const std::size_t bytes = static_cast<std::size_t>(mark.column) + (mark.line == 0 ? skipped_bytes_ : 0);
    return {name, mark.line + 1, characters_before(mark.line + 1, bytes) + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override { builder_.start_document(position(mark)); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_plain(mark, "?", anchor);
    builder_.null(position(mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { refuse_alias(mark); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    check_plain(mark, tag, anchor);
    check_quotes(mark);
    builder_.scalar(position(mark), value, tag == "!");
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check_plain(mark, tag, anchor);
    builder_.open(TreeBuilder::Kind::sequence, position(mark));
  }
  void OnSequenceEnd() override { builder_.close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value /*style*/) override {
    check_plain(mark, tag, anchor);
    builder_.open(TreeBuilder::Kind::map, position(mark));
  }
  void OnMapEnd() override { builder_.close(); }

 private:
  [[nodiscard]] const std::string& line_text(int line) const {
    static const std::string none;
    const std::vector<std::string>& lines = builder_.source().lines;
    const bool known = line > 0 && static_cast<std::size_t>(line) <= lines.size();
    return known ? lines[static_cast<std::size_t>(line) - 1] : none;
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
    builder_.refuse(position(mark), "anchors and aliases (&name, *name) are not supported", "write the value out, or quote the text");
  }

  // yaml-cpp reads on over the ends of lines, and lets the end of the file close a quote.
  void check_quotes(const YAML::Mark& mark) {
    if (mark.is_null() || mark.line < 0) return;
    const std::string& line = line_text(mark.line + 1);
    std::size_t at = static_cast<std::size_t>(mark.column) + (mark.line == 0 ? skipped_bytes_ : 0);
    if (at >= line.size() || (line[at] != '\'' && line[at] != '"')) return;
    const char quote = line[at];
    for (++at; at < line.size(); ++at) {
      const bool escaped = quote == '"' && line[at] == '\\';
      const bool doubled = quote == '\'' && line.compare(at, 2, "''") == 0;  // stands for one
      if (escaped || doubled) {
        ++at;
      } else if (line[at] == quote) {
        return;
      }
    }
    builder_.refuse(position(mark), "this quote is not closed on its line", "close it, or leave it out");
  }

  void check_plain(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse_alias(mark);
    if (!tag.empty() && tag != "?" && tag != "!")
      builder_.refuse(position(mark), "tags (!name) are not supported", "remove the tag, or quote the text");
  }

  TreeBuilder builder_;
  std::size_t skipped_bytes_;
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
  if (Tree tree = parse_quickly(text, source, skipped_bytes, path); tree && tree->kind != Node::Impl::Kind::null) return tree;
  return parse_with_yaml_cpp(text, source, skipped_bytes, path);
}

Tree parse_with_yaml_cpp(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes,
                         const std::string& path) {
  Events events(source, skipped_bytes, path);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& problem) {
    const bool open = problem.msg.find("flow not found") != std::string::npos;
    events.builder().refuse(events.position(problem.mark), "not valid YAML: " + problem.msg, open ? left_open : "");
  }
  Tree root = events.builder().root();
  if (!root || root->kind == Node::Impl::Kind::null) throw InputError(Position{source->name, 0, 0}, "the document is empty");
  return root;
}

}  // namespace rehearse::config
