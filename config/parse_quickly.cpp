#include "config/parse_quickly.hpp"

#include <yaml.h>

#include <algorithm>
#include <new>

#include "config/tree_builder.hpp"

namespace rehearse::config {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~Parser() { yaml_parser_delete(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // False where the text is no YAML.
  [[nodiscard]] bool next(yaml_event_t& event) { return yaml_parser_parse(&parser_, &event) != 0; }

 private:
  yaml_parser_t parser_{};
};

class Event {
 public:
  explicit Event(Parser& parser) : valid_(parser.next(event_)) {}
  ~Event() {
    if (valid_) yaml_event_delete(&event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] bool valid() const { return valid_; }
  [[nodiscard]] const yaml_event_t& operator*() const { return event_; }

 private:
  yaml_event_t event_{};
  bool valid_;
};

bool is_null_word(std::string_view text) { return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL"; }

class Reader {
 public:
  Reader(const std::shared_ptr<const Source>& source, std::size_t skipped_bytes, const std::string& path) : builder_(source, path) {
    if (skipped_bytes == 0) return;
    const std::string_view skipped = std::string_view(source->lines.front()).substr(0, skipped_bytes);
    skipped_ = static_cast<int>(std::ranges::count_if(skipped, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  }

  // False where yaml-cpp has to decide.
  [[nodiscard]] bool take(const yaml_event_t& event) {
    const Position where = position(event.start_mark);
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        builder_.start_document(where);
        return event.data.document_start.implicit != 0;
      case YAML_DOCUMENT_END_EVENT:
        return event.data.document_end.implicit != 0;
      case YAML_SCALAR_EVENT:
        return take_scalar(event, where);
      case YAML_MAPPING_START_EVENT:
        builder_.open(TreeBuilder::Kind::map, where);
        in_brackets_.push_back(event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
        return event.data.mapping_start.anchor == nullptr && event.data.mapping_start.tag == nullptr;
      case YAML_SEQUENCE_START_EVENT:
        builder_.open(TreeBuilder::Kind::sequence, where);
        in_brackets_.push_back(event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
        return event.data.sequence_start.anchor == nullptr && event.data.sequence_start.tag == nullptr;
      case YAML_MAPPING_END_EVENT:
      case YAML_SEQUENCE_END_EVENT:
        builder_.close();
        in_brackets_.pop_back();
        return true;
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
        return true;
      default:
        return false;  // aliases
    }
  }

  [[nodiscard]] Tree root() const { return builder_.root(); }

 private:
  // libyaml counts lines and characters from 0.
  [[nodiscard]] Position position(const yaml_mark_t& mark) const {
    const int column = static_cast<int>(mark.column) + 1;
    return {builder_.source().name, static_cast<int>(mark.line) + 1, mark.line == 0 ? column + skipped_ : column};
  }

  // The two part over question marks in brackets and over escapes. Asked of one line after another.
  [[nodiscard]] bool is_disputed(int line) {
    if (line == asked_.line) return asked_.disputed;
    const std::vector<std::string>& lines = builder_.source().lines;
    const auto index = static_cast<std::size_t>(line) - 1;
    asked_ = {line, index < lines.size() && lines[index].find_first_of("?\\") != std::string::npos};
    return asked_.disputed;
  }

  [[nodiscard]] bool take_scalar(const yaml_event_t& event, const Position& where) {
    const auto& scalar = event.data.scalar;
    if (scalar.anchor != nullptr || scalar.tag != nullptr || event.start_mark.line != event.end_mark.line) return false;
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
    const bool nothing = !quoted && text.empty();
    if (nothing && (in_brackets_.empty() || in_brackets_.back() || builder_.in_sequence())) return false;
    if (is_disputed(where.line)) return false;
    if (!quoted && is_null_word(text)) {
      builder_.null(where);
    } else {
      builder_.scalar(where, text, quoted);
    }
    return true;
  }

  TreeBuilder builder_;
  std::vector<bool> in_brackets_;  // [level]
  struct {
    int line = 0;
    bool disputed = false;
  } asked_;
  int skipped_ = 0;  // characters of the source's first line before the text
};

}  // namespace

Tree parse_quickly(const std::string& text, const std::shared_ptr<const Source>& source, std::size_t skipped_bytes,
                   const std::string& path) {
  Parser parser(text);
  Reader reader(source, skipped_bytes, path);
  try {
    for (;;) {
      const Event event(parser);
      if (!event.valid() || !reader.take(*event)) return nullptr;
      if ((*event).type == YAML_STREAM_END_EVENT) return reader.root();
    }
  } catch (const InputError&) {
    return nullptr;  // yaml-cpp words it
  }
}

}  // namespace rehearse::config
