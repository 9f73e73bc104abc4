#include "config/plain_yaml.hpp"

#include <algorithm>
#include <set>

namespace rehearse::config {
namespace {

using Kind = Node::Impl::Kind;

constexpr int deepest = 90;               // levels; whether the deeper ones are too many is not decided here
constexpr std::size_t longest_key = 200;  // bytes; yaml-cpp has limits of its own

struct NotPlain {};

// Where a value belongs: its path, and its key if it has one.
struct Place {
  std::string path;
  std::string key;
  int key_line = 0, key_column = 0;
};

bool is_null_word(std::string_view text) { return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL"; }

class PlainReader {
 public:
  PlainReader(std::string_view text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes, std::string path)
      : text_(text), source_(source), path_(std::move(path)) {
    if (skipped_bytes > 0) counted_.characters = characters(std::string_view(source->lines.front()).substr(0, skipped_bytes));
  }

  [[nodiscard]] Tree document() {
    next_content();
    if (at_end()) throw NotPlain();
    Tree root = block(Place{path_, "", 0, 0});
    if (!at_end()) throw NotPlain();
    return root;
  }

 private:
  // Reading on ------------------------------------------------------------------------------------------------------------------------

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\n'; }
  [[nodiscard]] std::size_t indent() const { return at_ - line_start_; }
  [[nodiscard]] bool at_item() const { return peek() == '-' && peek(1) == ' '; }

  static int characters(std::string_view bytes) {
    return static_cast<int>(std::ranges::count_if(bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  }

  // Counted on from the last place asked for, so that a long line costs its length once.
  [[nodiscard]] int column_at(std::size_t at) {
    counted_.characters += characters(text_.substr(counted_.at, at - counted_.at));
    counted_.at = at;
    return counted_.characters + 1;
  }

  void new_line() {
    line_start_ = ++at_;
    ++line_;
    counted_ = {at_, 0};
  }

  // Past spaces, comments and ends of lines.
  void next_content() {
    while (!at_end()) {
      const char c = text_[at_];
      if (c == '\n') {
        new_line();
      } else if (c == '#' && (at_ == line_start_ || text_[at_ - 1] == ' ')) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ') {
        ++at_;
      } else {
        return;
      }
    }
  }

  // After a value in block style nothing but a comment stands on its line; what follows is no continuation of it.
  void end_of_value(std::size_t parent_indent) {
    const int line = line_;
    next_content();
    if (!at_end() && (line_ == line || indent() > parent_indent)) throw NotPlain();
  }

  // Nodes -----------------------------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::shared_ptr<Node::Impl> make(Kind kind, std::size_t at, Place&& place) {
    auto node = std::make_shared<Node::Impl>();
    node->kind = kind;
    node->source = source_;
    node->line = line_;
    node->column = column_at(at);
    node->path = std::move(place.path);
    node->key = std::move(place.key);
    node->key_line = place.key_line;
    node->key_column = place.key_column;
    if (kind == Kind::null && node->key_line > 0) {
      node->line = node->key_line;
      node->column = node->key_column;
    }
    return node;
  }

  // A mapping being read: no key comes twice.
  struct Map {
    std::shared_ptr<Node::Impl> node;
    std::set<std::string> keys{};
    [[nodiscard]] Place place(std::string&& key, int line, int column) {
      if (key == "<<" || !keys.insert(key).second) throw NotPlain();
      std::string path = join_path(node->path, key);
      return {std::move(path), std::move(key), line, column};
    }
  };

  [[nodiscard]] static Place item_place(const Node::Impl& list) { return {join_path(list.path, list.children.size()), "", 0, 0}; }

  void enter() {
    if (++depth_ > deepest) throw NotPlain();
  }

  // Scalars ---------------------------------------------------------------------------------------------------------------------------

  static bool may_begin(char c) { return std::string_view(" \n,[]{}#&*!|>'\"%@`?:").find(c) == std::string_view::npos; }

  // Up to the closing quote, on one line.
  [[nodiscard]] std::string quoted() {
    const char quote = text_[at_++];
    std::string out;
    for (;; ++at_) {
      const char c = peek();
      if (c == '\n') throw NotPlain();
      if (c == quote && quote == '\'' && peek(1) == '\'') {
        out += text_[at_++];
      } else if (c == quote) {
        ++at_;
        return out;
      } else if (c == '\\' && quote == '"') {
        const char escaped = peek(1);
        if (escaped != '"' && escaped != '\\') throw NotPlain();
        out += escaped;
        ++at_;
      } else {
        out += c;
      }
    }
  }

  // Without quotes, to the end of the line, a comment, ": ", or in flow style what ends an entry.
  [[nodiscard]] std::string_view plain(bool flow) {
    const std::size_t start = at_;
    if (!may_begin(peek()) || (peek() == '-' && !may_begin(peek(1)))) throw NotPlain();
    for (;; ++at_) {
      const char c = peek();
      if (c == '\n' || (c == ':' && (peek(1) == ' ' || peek(1) == '\n')) || (c == '#' && text_[at_ - 1] == ' ')) break;
      if (flow && (c == ',' || c == ']' || c == '}')) break;
      if (flow && (c == '[' || c == '{' || c == '?' || (c == ':' && !may_begin(peek(1))))) throw NotPlain();
    }
    const std::size_t last = text_.find_last_not_of(' ', at_ - 1);
    return text_.substr(start, last + 1 - start);
  }

  // A key up to and with its colon, after which a space or the line's end comes.
  [[nodiscard]] Place key(Map& map, bool flow) {
    const int column = column_at(at_);
    const bool in_quotes = peek() == '"' || peek() == '\'';
    std::string text = in_quotes ? quoted() : std::string(plain(flow));
    if (peek() != ':' || (peek(1) != ' ' && peek(1) != '\n') || text.size() > longest_key || (!in_quotes && is_null_word(text))) {
      throw NotPlain();
    }
    ++at_;
    return map.place(std::move(text), line_, column);
  }

  // A scalar or what is in brackets.
  [[nodiscard]] Tree inline_value(Place&& place, bool flow) {
    const std::size_t start = at_;
    if (peek() == '{') return flow_map(std::move(place));
    if (peek() == '[') return flow_list(std::move(place));
    if (peek() == '"' || peek() == '\'') {
      auto node = make(Kind::scalar, start, std::move(place));
      node->text = quoted();
      node->quoted = true;
      if (peek() == ':') throw NotPlain();
      return node;
    }
    const std::string_view text = plain(flow);
    if (peek() == ':') throw NotPlain();
    auto node = make(is_null_word(text) ? Kind::null : Kind::scalar, start, std::move(place));
    if (node->kind == Kind::scalar) node->text = text;
    return node;
  }

  // In brackets -----------------------------------------------------------------------------------------------------------------------

  // Past a comma to the next entry, or past the closing bracket.
  [[nodiscard]] bool more_entries(char closing) {
    next_content();
    if (peek() == closing) {
      ++at_;
      --depth_;
      return false;
    }
    if (peek() != ',') throw NotPlain();
    ++at_;
    next_content();
    return true;
  }

  [[nodiscard]] bool empty_brackets(char closing) {
    ++at_;
    enter();
    next_content();
    if (peek() != closing) return false;
    ++at_;
    --depth_;
    return true;
  }

  [[nodiscard]] Tree flow_map(Place&& place) {
    Map map{make(Kind::map, at_, std::move(place))};
    if (empty_brackets('}')) return map.node;
    do {
      Place entry = key(map, true);
      next_content();
      map.node->children.push_back(inline_value(std::move(entry), true));
    } while (more_entries('}'));
    return map.node;
  }

  [[nodiscard]] Tree flow_list(Place&& place) {
    auto list = make(Kind::sequence, at_, std::move(place));
    if (empty_brackets(']')) return list;
    do {
      list->children.push_back(inline_value(item_place(*list), true));
    } while (more_entries(']'));
    return list;
  }

  // By indentation --------------------------------------------------------------------------------------------------------------------

  [[nodiscard]] Tree block(Place&& place) {
    if (at_item()) return block_list(std::move(place));
    if (peek() != '{' && peek() != '[') return block_map(std::move(place));
    Tree value = inline_value(std::move(place), true);
    end_of_value(0);
    return value;
  }

  [[nodiscard]] Tree block_map(Place&& place) {
    const std::size_t column = indent();
    Map map{make(Kind::map, at_, std::move(place))};
    enter();
    do {
      map.node->children.push_back(block_value(key(map, false), column));
    } while (!at_end() && indent() == column && !at_item());
    if (!at_end() && indent() > column) throw NotPlain();
    --depth_;
    return map.node;
  }

  // What follows a key: on its line, or indented below; a list may stand under its key without indentation.
  [[nodiscard]] Tree block_value(Place&& place, std::size_t parent_indent) {
    const int line = line_;
    next_content();
    if (!at_end() && line_ == line) {
      Tree value = inline_value(std::move(place), false);
      end_of_value(parent_indent);
      return value;
    }
    if (!at_end() && (indent() > parent_indent || (indent() == parent_indent && at_item()))) return block(std::move(place));
    return make(Kind::null, at_, std::move(place));
  }

  // Does a mapping begin here, in the line of a list's dash?
  [[nodiscard]] bool at_key() {
    if (peek() == '{' || peek() == '[') return false;
    const std::size_t start = at_;
    if (peek() == '"' || peek() == '\'') {
      static_cast<void>(quoted());
    } else {
      static_cast<void>(plain(false));
    }
    const bool found = peek() == ':';
    at_ = start;
    return found;
  }

  [[nodiscard]] Tree block_list(Place&& place) {
    const std::size_t column = indent();
    auto list = make(Kind::sequence, at_, std::move(place));
    enter();
    do {
      const int line = line_;
      ++at_;
      next_content();
      if (at_end() || line_ != line || at_item()) throw NotPlain();
      if (at_key()) {
        list->children.push_back(block_map(item_place(*list)));
      } else {
        list->children.push_back(inline_value(item_place(*list), false));
        end_of_value(column);
      }
    } while (!at_end() && indent() == column && at_item());
    if (!at_end() && indent() > column) throw NotPlain();
    --depth_;
    return list;
  }

  std::string_view text_;
  const std::shared_ptr<const Source>& source_;
  std::string path_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1, depth_ = 0;
  struct {
    std::size_t at = 0;
    int characters = 0;
  } counted_;
};

// Marks of documents, and white space that YAML weighs.
bool has_more_than_plain(std::string_view text) {
  if (text.find_first_of("\t\r") != std::string_view::npos) return true;
  for (const std::string_view mark : {"---", "..."}) {
    for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
      if (at == 0 || text[at - 1] == '\n') return true;
    }
  }
  return false;
}

}  // namespace

Tree parse_plain(std::string_view text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes, const std::string& path) {
  if (has_more_than_plain(text)) return nullptr;
  try {
    return PlainReader(text, source, skipped_bytes, path).document();
  } catch (const NotPlain&) {
    return nullptr;
  }
}

}  // namespace rehearse::config
