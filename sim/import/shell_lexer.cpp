#include "sim/import/shell_lexer.hpp"

#include <array>
#include <cctype>

namespace rehearse::sim {
namespace {

class Lexer {
 public:
  Lexer(const TextFile& file, std::vector<ShellWord>& directives) : file_(file), text_(file.text), directives_(directives) {}

  std::vector<ShellToken> cut() {
    while (skip_blanks()) next();
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] char here() const { return text_[at_]; }
  [[nodiscard]] bool ahead(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }

  void step() {
    if (text_[at_] == '\n') {
      ++line_;
      column_ = 0;
    }
    if ((static_cast<unsigned char>(text_[at_]) & 0xC0U) != 0x80U && text_[at_] != '\n') ++column_;
    ++at_;
  }
  void step(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes && !done(); ++i) step();
  }

  // Blanks, continued lines and comments; false at the end.
  bool skip_blanks() {
    while (!done()) {
      if (here() == ' ' || here() == '\t' || here() == '\r') {
        step();
      } else if (ahead("\\\n")) {
        step(2);
      } else if (ahead("\\\r\n")) {
        step(3);
      } else if (here() == '#') {
        comment();
      } else {
        return true;
      }
    }
    return false;
  }

  void comment() {
    const int line = line_, column = column_ + 1;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string comment = text_.substr(at_, end - at_);
    for (const char* mark : {"#SBATCH ", "#PBS ", "#BSUB "}) {
      if (comment.starts_with(mark)) directives_.push_back({comment.substr(std::string_view(mark).size()), line, column});
    }
    step(end - at_);
  }

  void next() {
    static constexpr std::array<std::string_view, 10> operators{"&&", "||", ";;", "\n", ";", "&", "|", "(", ")", "<"};
    const int line = line_, column = column_ + 1;
    if (ahead("<<") && !ahead("<<<")) return here_document();
    if (here() == '<' || here() == '>' || ahead("&>")) return redirection();
    for (const std::string_view op : operators) {
      if (!ahead(op)) continue;
      step(op.size());
      tokens_.push_back({ShellToken::Kind::op, op == "\n" ? ";" : std::string(op), line, column, false, {}});
      return;
    }
    const std::string raw = word();
    if (!done() && here() == '(' && is_assignment(raw)) return array(raw, line, column);
    tokens_.push_back({ShellToken::Kind::word, raw, line, column, false, {}});
  }

  [[nodiscard]] static bool is_assignment(const std::string& raw) {
    const std::size_t equals = raw.size() - 1;
    if (raw.empty() || raw[equals] != '=' || equals == 0) return false;
    for (std::size_t i = 0; i < equals; ++i) {
      const bool plus = raw[i] == '+' && i + 1 == equals && i > 0;
      if (std::isalnum(static_cast<unsigned char>(raw[i])) == 0 && raw[i] != '_' && !plus) return false;
    }
    return true;
  }

  void array(const std::string& raw, int line, int column) {
    const bool appends = raw.ends_with("+=");
    ShellToken token{ShellToken::Kind::array, raw.substr(0, raw.size() - (appends ? 2 : 1)), line, column, appends, {}};
    step();
    while (true) {
      if (!skip_blanks()) file_.fail(line, column, "the list that begins here is not closed");
      if (here() == ')') break;
      if (here() == '\n') {
        step();
        continue;
      }
      const int word_line = line_, word_column = column_ + 1;
      std::string element = word();
      if (element.empty()) file_.fail(word_line, word_column, "this does not belong into a list of words");
      token.elements.push_back({std::move(element), word_line, word_column});
    }
    step();
    tokens_.push_back(std::move(token));
  }

  // One word as written; ends at a blank or operator that is not quoted.
  std::string word() {
    const std::size_t start = at_;
    while (!done()) {
      const char c = here();
      if (c == '\\') {
        if (ahead("\\\n") || ahead("\\\r\n")) break;
        step(2);
      } else if (c == '\'' || c == '"' || c == '`') {
        quoted(c);
      } else if (ahead("$(") || ahead("${")) {
        bracketed();
      } else if (std::string_view(" \t\r\n;&|()<>").find(c) != std::string_view::npos) {
        break;
      } else {
        step();
      }
    }
    return text_.substr(start, at_ - start);
  }

  void quoted(char quote) {
    const int line = line_, column = column_ + 1;
    step();
    while (!done() && here() != quote) {
      if (quote == '"' && (ahead("$(") || ahead("${"))) {
        bracketed();
        continue;
      }
      step(here() == '\\' && quote != '\'' ? 2 : 1);
    }
    if (done()) file_.fail(line, column, "the quote that begins here is not closed");
    step();
  }

  // $( ... ), $(( ... )) and ${ ... } with what is nested in them.
  void bracketed() {
    const int line = line_, column = column_ + 1;
    const char open = text_[at_ + 1], close = open == '(' ? ')' : '}';
    step(2);
    int depth = 1;
    if (++nested_ > deepest) file_.fail(line, column, "brackets are nested deeper than 50 levels");
    while (!done() && depth > 0) {
      const char c = here();
      if (c == '\'' || c == '"' || c == '`') {
        quoted(c);
        continue;
      }
      if (ahead("$(") || ahead("${")) {
        bracketed();
        continue;
      }
      if (c == open) ++depth;
      if (c == close) --depth;
      step(c == '\\' ? 2 : 1);
    }
    --nested_;
    if (depth > 0) file_.fail(line, column, "the bracket that begins here is not closed");
  }

  void redirection() {
    while (!done() && std::string_view("<>&").find(here()) != std::string_view::npos) step();
    if (skip_blanks() && here() != '\n') static_cast<void>(word());
  }

  // << WORD: its lines are no commands.
  void here_document() {
    const int line = line_, column = column_ + 1;
    step(2);
    if (!done() && here() == '-') step();
    skip_blanks();
    std::string end = done() ? "" : word();
    std::erase_if(end, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
    if (end.empty()) file_.fail(line, column, "a word is missing behind <<");
    step(std::min(text_.find('\n', at_), text_.size()) - at_);
    while (!done()) {
      step();
      const std::size_t stop = std::min(text_.find('\n', at_), text_.size());
      std::string content = text_.substr(at_, stop - at_);
      content.erase(0, content.find_first_not_of('\t') == std::string::npos ? content.size() : content.find_first_not_of('\t'));
      if (content.ends_with('\r')) content.pop_back();
      step(stop - at_);
      if (content == end) return;
    }
    file_.fail(line, column, "the text that begins here does not end");
  }

  static constexpr int deepest = 50;
  const TextFile& file_;
  const std::string& text_;
  std::vector<ShellWord>& directives_;
  std::vector<ShellToken> tokens_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 0, nested_ = 0;
};

}  // namespace

std::vector<ShellToken> cut_shell(const TextFile& file, std::vector<ShellWord>& directives) { return Lexer(file, directives).cut(); }

}  // namespace rehearse::sim
