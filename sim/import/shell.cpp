#include "sim/import/shell.hpp"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <set>

#include "sim/import/shell_expand.hpp"
#include "sim/import/shell_lexer.hpp"

namespace rehearse::sim {
namespace {

using TokenKind = ShellToken::Kind;
using Truth = std::optional<bool>;  // none: only a run would tell

constexpr std::size_t most_words = 100'000;

bool is_assignment(const std::string& raw, std::size_t& equals) {
  equals = raw.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const std::size_t end = raw[equals - 1] == '+' ? equals - 1 : equals;
  for (std::size_t i = 0; i < end; ++i) {
    if (std::isalnum(static_cast<unsigned char>(raw[i])) == 0 && raw[i] != '_') return false;
  }
  return end > 0 && std::isdigit(static_cast<unsigned char>(raw[0])) == 0;
}

class ShellReader {
 public:
  ShellReader(const TextFile& file, const std::map<std::string, std::string>& environment, ShellScript& script)
      : file_(file), script_(script), variables_(file) {
    for (const auto& [name, value] : environment) variables_.assign(name, {value}, false);
    std::vector<ShellWord> directives;
    tokens_ = cut_shell(file, directives);
    for (const ShellWord& line : directives) script_.directives.push_back({split(line)});
  }

  void run() {
    while (at_ < tokens_.size()) statement(true);
    for (const std::string& taken : variables_.defaults_taken()) script_.inferred.push_back(taken);
  }

 private:
  [[nodiscard]] bool done() const { return at_ >= tokens_.size(); }
  [[nodiscard]] const ShellToken& here() const { return tokens_[at_]; }
  [[nodiscard]] bool is_op(std::string_view op) const { return !done() && here().kind == TokenKind::op && here().text == op; }
  [[nodiscard]] bool is_word(std::string_view word) const { return !done() && here().kind == TokenKind::word && here().text == word; }

  std::vector<ShellWord> split(const ShellWord& line) {
    std::vector<ShellWord> words;
    std::string word;
    for (const char c : line.text + ' ') {
      if (c != ' ' && c != '\t' && c != '\r' && c != '=') {
        word += c;
      } else if (!word.empty()) {
        words.push_back({std::move(word), line.line, line.column});
        word.clear();
      }
    }
    return words;
  }

  // Everything up to the end of one statement; executed only where `live`. A chain by && and || goes on as far as tests decide it.
  void statement(bool live) {
    Truth truth = pipeline(live);
    while (is_op("&&") || is_op("||")) {
      const bool on = here().text == "&&";
      ++at_;
      while (is_op(";")) ++at_;
      // A command's outcome is taken to be good.
      const bool runs = truth.value_or(true) == on;
      const Truth next = pipeline(live && runs);
      if (runs) truth = next;
    }
    if (!done() && here().kind == TokenKind::op) ++at_;
  }

  Truth pipeline(bool live) {
    if (done()) return std::nullopt;
    if (++depth_ > 200) file_.fail(here().line, here().column, "blocks are nested deeper than 200 levels");
    const Truth truth = command(live);
    --depth_;
    return truth;
  }

  Truth command(bool live) {
    while (is_word("{") || is_word("}") || is_word("!") || is_word("time")) ++at_;
    if (done()) return std::nullopt;
    if (here().kind == TokenKind::array) {
      assign_array(live);
      return rest_of_command(live, {});
    }
    if (here().kind == TokenKind::op) return std::nullopt;
    const std::string& first = here().text;
    if (first == "if") return conditional(live);
    if (first == "for" || first == "while" || first == "until" || first == "select") return pass_over("do", "done");
    if (first == "case") return pass_over("case", "esac");
    if (first == "function" || is_function()) return pass_over_function();
    return rest_of_command(live, {});
  }

  [[nodiscard]] bool is_function() const {
    return at_ + 2 < tokens_.size() && tokens_[at_ + 1].kind == TokenKind::op && tokens_[at_ + 1].text == "(" &&
           tokens_[at_ + 2].kind == TokenKind::op && tokens_[at_ + 2].text == ")";
  }

  // From the word here to the one that ends its block; what is inside may or may not be done.
  Truth pass_over(const std::string& open, const std::string& close) {
    const ShellToken& start = here();
    script_.inferred.push_back(fmt::format("line {}: what a '{}' does is passed over", start.line, start.text));
    int depth = open == "case" ? 0 : -1;  // `for` itself is not yet its `do`
    bool opened = false;
    for (; !done(); ++at_) {
      if (here().kind != TokenKind::word) continue;
      if (here().text == open) {
        depth += depth < 0 ? 2 : 1;
        opened = true;
      } else if (opened && here().text == close && --depth == 0) {
        ++at_;
        return std::nullopt;
      }
    }
    file_.fail(start.line, start.column, fmt::format("the '{}' that begins here has no '{}'", start.text, close));
  }

  Truth pass_over_function() {
    const ShellToken& start = here();
    int depth = 0;
    for (; !done(); ++at_) {
      if (here().kind != TokenKind::word) continue;
      if (here().text == "{") ++depth;
      if (here().text == "}" && --depth == 0) {
        ++at_;
        return std::nullopt;
      }
    }
    file_.fail(start.line, start.column, "the function that begins here does not end");
  }

  // if LIST; then LIST; elif LIST; then LIST; else LIST; fi. Where only a run would tell, no branch is taken.
  Truth conditional(bool live) {
    const ShellToken& start = here();
    bool decided = !live;
    while (true) {
      const bool otherwise = is_word("else");
      ++at_;
      const Truth holds = otherwise ? Truth(true) : condition(live && !decided, start);
      if (live && !decided && !holds) {
        script_.inferred.push_back(fmt::format("line {}: no branch of this 'if' is taken, since only a run would tell which", start.line));
      }
      const bool taken = live && !decided && holds.value_or(false);
      decided = decided || !holds || *holds;
      while (!is_word("elif") && !is_word("else") && !is_word("fi")) {
        if (done()) file_.fail(start.line, start.column, "the 'if' that begins here has no 'fi'");
        statement(taken);
      }
      if (!is_word("fi")) continue;
      ++at_;
      return std::nullopt;
    }
  }

  Truth condition(bool live, const ShellToken& start) {
    Truth truth;
    while (!is_word("then")) {
      if (done()) file_.fail(start.line, start.column, "the 'if' that begins here has no 'then'");
      truth = pipeline(live);
      while (is_op("&&") || is_op("||")) {
        const bool both = here().text == "&&";
        ++at_;
        const Truth other = pipeline(live);
        truth = joined(truth, other, both);
      }
      if (!done() && here().kind == TokenKind::op) ++at_;
    }
    ++at_;
    return truth;
  }

  static Truth joined(Truth a, Truth b, bool both) {
    if (both) return a == Truth(false) || b == Truth(false) ? Truth(false) : a && b ? Truth(true) : std::nullopt;
    return a == Truth(true) || b == Truth(true) ? Truth(true) : a && b ? Truth(false) : std::nullopt;
  }

  void assign_array(bool live) {
    const ShellToken& token = here();
    ++at_;
    if (!live) return;
    std::vector<std::string> values;
    for (const ShellWord& element : token.elements) {
      for (std::string& field : variables_.fields(element.text, element.line)) values.push_back(std::move(field));
    }
    count(values.size(), token.line);
    variables_.assign(token.text, std::move(values), token.appends);
  }

  void count(std::size_t words, int line) {
    words_ += words;
    if (words_ > most_words) file_.fail(line, 1, fmt::format("the script has more than {} words", most_words));
  }

  // A simple command: assignments, then words.
  Truth rest_of_command(bool live, ShellCommand command) {
    std::vector<std::string> plain;
    bool assigns = true;
    for (; !done() && here().kind != TokenKind::op; ++at_) {
      const ShellToken& token = here();
      if (token.kind == TokenKind::array) {
        assign_array(live);
        --at_;
        continue;
      }
      if (!live) continue;
      std::size_t equals = 0;
      if (assigns && is_assignment(token.text, equals)) {
        const bool appends = token.text[equals - 1] == '+';
        const std::string name = token.text.substr(0, equals - (appends ? 1 : 0));
        std::string value = variables_.text(token.text.substr(equals + 1), token.line);
        if (value.find("--") != std::string::npos && value.find(' ') != std::string::npos) {
          script_.assigned.push_back({{{value, token.line, token.column}}});
        }
        if (appends) value = variables_.text("${" + name + "}", token.line) + value;
        variables_.assign(name, {std::move(value)}, false);
        continue;
      }
      static const std::set<std::string, std::less<>> declarations{"export", "declare", "local", "readonly", "typeset", "env", "-x", "-a"};
      assigns = assigns && declarations.contains(token.text);
      for (std::string& field : variables_.fields(token.text, token.line))
        command.words.push_back({std::move(field), token.line, token.column});
      count(1, token.line);
    }
    // Grouping brackets and what is behind a pipe are commands of their own.
    if (!live || command.words.empty()) return std::nullopt;
    count(command.words.size(), command.words.front().line);
    const Truth truth = test(command);
    script_.commands.push_back(std::move(command));
    return truth;
  }

  // [ ... ], [[ ... ]] and test over texts and numbers.
  static Truth test(const ShellCommand& command) {
    std::vector<std::string> words;
    for (const ShellWord& word : command.words) words.push_back(word.text);
    const bool bracket = words[0] == "[" || words[0] == "[[";
    if (!bracket && words[0] != "test") return std::nullopt;
    if (bracket) {
      if (words.back() != "]" && words.back() != "]]") return std::nullopt;
      words.pop_back();
    }
    words.erase(words.begin());
    bool holds = true;
    while (!words.empty() && words[0] == "!") {
      holds = !holds;
      words.erase(words.begin());
    }
    const Truth truth = outcome(words);
    return truth ? Truth(*truth == holds) : std::nullopt;
  }

  static Truth outcome(const std::vector<std::string>& words) {
    if (words.size() == 1) return words[0] == "-n" ? Truth(false) : words[0] == "-z" ? Truth(true) : Truth(!words[0].empty());
    if (words.size() == 2 && (words[0] == "-n" || words[0] == "-z")) return words[1].empty() == (words[0] == "-z");
    if (words.size() != 3) return std::nullopt;
    const std::string& op = words[1];
    if (op == "=" || op == "==") return words[0] == words[2];
    if (op == "!=") return words[0] != words[2];
    const std::string difference = shell_arithmetic(words[0] + "-" + words[2]);
    if (difference.empty()) return std::nullopt;
    const bool zero = difference == "0" || difference == "-0", negative = !zero && difference[0] == '-';
    if (op == "-eq") return zero;
    if (op == "-ne") return !zero;
    if (op == "-lt" || op == "<") return negative;
    if (op == "-le") return negative || zero;
    if (op == "-gt" || op == ">") return !negative && !zero;
    if (op == "-ge") return !negative;
    return std::nullopt;
  }

  const TextFile& file_;
  ShellScript& script_;
  ShellVariables variables_;
  std::vector<ShellToken> tokens_;
  std::size_t at_ = 0, words_ = 0;
  int depth_ = 0;
};

}  // namespace

ShellScript read_shell(const TextFile& file, const std::map<std::string, std::string>& environment) {
  ShellScript script;
  ShellReader(file, environment, script).run();
  return script;
}

}  // namespace rehearse::sim
