#include "sim/import/shell_expand.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

namespace rehearse::sim {
namespace {

constexpr std::size_t longest_text = std::size_t{1} << 20U;
constexpr std::size_t most_bytes = std::size_t{64} << 20U;  // expanded in all

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Where the bracket that opens at `at` (of "$(" or "${", its second character) is closed; npos when it is not.
std::size_t closing(const std::string& text, std::size_t at) {
  const char open = text[at], close = open == '(' ? ')' : '}';
  int depth = 0;
  char quote = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '\'' || text[i] == '"') {
      quote = text[i];
    } else if (text[i] == open) {
      ++depth;
    } else if (text[i] == close && --depth == 0) {
      return i;
    }
  }
  return std::string::npos;
}

}  // namespace

// One word on its way.
class ShellVariables::Expansion {
 public:
  Expansion(ShellVariables& variables, const std::string& raw, int line, int depth, bool splits)
      : variables_(variables), raw_(raw), line_(line), depth_(depth), splits_(splits) {
    if (depth > 50) variables.file_.fail(line, 1, "expansions are nested deeper than 50 levels");
  }

  std::vector<std::string> run() {
    while (at_ < raw_.size()) step();
    end_field();
    return std::move(fields_);
  }

 private:
  void step() {
    const char c = raw_[at_];
    if (c == '\\' && at_ + 1 < raw_.size()) {
      add(raw_.substr(at_ + 1, 1));
      at_ += 2;
    } else if (c == '\'' && !quoted_) {
      const std::size_t end = std::min(raw_.find('\'', at_ + 1), raw_.size());
      add(raw_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    } else if (c == '"') {
      quoted_ = !quoted_;
      begun_ = true;
      ++at_;
    } else if (c == '`') {
      at_ = std::min(raw_.find('`', at_ + 1), raw_.size() - 1) + 1;
      begun_ = begun_ || quoted_;
    } else if (c == '$') {
      dollar();
    } else {
      add(raw_.substr(at_++, 1));
    }
  }

  void add(const std::string& text) {
    variables_.spend(text.size(), line_);
    field_ += text;
    begun_ = true;
    if (field_.size() > longest_text) variables_.file_.fail(line_, 1, "a text here grows beyond 1 MiB");
  }

  void end_field() {
    if (begun_) fields_.push_back(std::move(field_));
    field_.clear();
    begun_ = false;
  }

  // Values put in: unquoted they fall apart at blanks.
  void put(const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0 && splits_) end_field();
      if (i > 0 && !splits_) add(" ");
      if (quoted_ || !splits_) {
        add(values[i]);
      } else {
        put_split(values[i]);
      }
    }
  }
  void put_split(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && !is_blank(text[end])) ++end;
      if (end > at) add(text.substr(at, end - at));
      if (end < text.size()) end_field();
      at = end + 1;
    }
  }

  void dollar() {
    const char next = at_ + 1 < raw_.size() ? raw_[at_ + 1] : 0;
    if (next == '(' || next == '{') {
      const std::size_t end = closing(raw_, at_ + 1);
      if (end == std::string::npos) variables_.file_.fail(line_, 1, "a bracket on this line is not closed");
      const std::string inside = raw_.substr(at_ + 2, end - at_ - 2);
      at_ = end + 1;
      begun_ = begun_ || quoted_;
      if (next == '{') return parameter(inside);
      if (inside.starts_with('(') && inside.ends_with(')')) put({arithmetic(inside.substr(1, inside.size() - 2))});
      return;  // a command's output is not known
    }
    std::size_t end = at_ + 1;
    while (end < raw_.size() && is_name(raw_[end]) && (end > at_ + 1 || std::isdigit(static_cast<unsigned char>(raw_[end])) == 0)) ++end;
    if (end == at_ + 1) {  // $1, $@, $?, a lone $
      const bool special = next != 0 && std::string_view("0123456789@*#?!$-").find(next) != std::string_view::npos;
      at_ += special ? 2 : 1;
      begun_ = begun_ || quoted_;
      if (!special) add("$");
      if (special) put(first_of(variables_.value(std::string(1, next))));
      return;
    }
    const std::string name = raw_.substr(at_ + 1, end - at_ - 1);
    at_ = end;
    begun_ = begun_ || quoted_;
    put(first_of(variables_.value(name)));
  }

  static std::vector<std::string> first_of(std::vector<std::string> values) {
    if (values.size() > 1) values.resize(1);
    return values;
  }

  // The inside of ${ ... }.
  void parameter(const std::string& inside) {
    std::size_t end = 0;
    while (end < inside.size() && is_name(inside[end])) ++end;
    const std::string name = inside.substr(0, end);
    std::string rest = inside.substr(end);
    std::vector<std::string> values = variables_.value(name);
    if (rest.starts_with("[@]") || rest.starts_with("[*]")) {
      rest.erase(0, 3);
    } else if (rest.starts_with("[")) {
      const std::size_t close = std::min(rest.find(']'), rest.size());
      const std::string index = shell_arithmetic(nested(rest.substr(1, close - 1)));
      const std::size_t which = index.empty() || index.size() > 6 || index[0] == '-' ? values.size() : std::stoul(index);
      values = which < values.size() ? std::vector{values[which]} : std::vector<std::string>{};
      rest.erase(0, close + 1);
    } else {
      values = first_of(std::move(values));
    }
    const bool empty = values.empty() || (values.size() == 1 && values[0].empty());
    for (const char* mark : {":-", ":=", "-", "="}) {
      if (!rest.starts_with(mark) || name.empty()) continue;
      const bool missing = *mark == ':' ? empty : values.empty();
      if (!missing) break;
      const std::string otherwise = nested(rest.substr(std::string_view(mark).size()));
      variables_.took_default(name, otherwise);
      if (rest.find('=') < 2) variables_.values_[name] = {otherwise};
      return put({otherwise});
    }
    if (rest.starts_with(":+") || rest.starts_with("+")) {
      if (!empty) put({nested(rest.substr(rest[0] == ':' ? 2 : 1))});
      return;
    }
    put(values);
  }

  std::string nested(const std::string& raw) {
    const std::vector<std::string> parts = Expansion(variables_, raw, line_, depth_ + 1, false).run();
    return parts.empty() ? "" : parts.front();
  }

  // Bare names are variables here.
  std::string arithmetic(const std::string& expression) {
    const std::string expanded = nested(expression);
    std::string numbers;
    for (std::size_t i = 0; i < expanded.size();) {
      std::size_t end = i;
      while (end < expanded.size() && is_name(expanded[end])) ++end;
      const bool name = end > i && std::isdigit(static_cast<unsigned char>(expanded[i])) == 0;
      if (name) {
        const std::vector<std::string> values = variables_.value(expanded.substr(i, end - i));
        numbers += values.empty() ? "0" : values.front();
      } else {
        numbers += expanded.substr(i, std::max<std::size_t>(end - i, 1));
      }
      i = std::max(end, i + 1);
    }
    return shell_arithmetic(numbers);
  }

  ShellVariables& variables_;
  const std::string& raw_;
  int line_, depth_;
  bool splits_, quoted_ = false, begun_ = false;
  std::size_t at_ = 0;
  std::string field_;
  std::vector<std::string> fields_;
};

void ShellVariables::assign(const std::string& name, std::vector<std::string> values, bool appends) {
  std::vector<std::string>& to = values_[name];
  if (!appends) to.clear();
  to.insert(to.end(), std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
}

std::vector<std::string> ShellVariables::fields(const std::string& raw, int line) { return Expansion(*this, raw, line, 0, true).run(); }

std::string ShellVariables::text(const std::string& raw, int line) {
  const std::vector<std::string> parts = Expansion(*this, raw, line, 0, false).run();
  return parts.empty() ? "" : parts.front();
}

std::vector<std::string> ShellVariables::value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

void ShellVariables::took_default(const std::string& name, const std::string& text) {
  if (told_.insert(name).second) defaults_.push_back(fmt::format("{} is '{}': the script's default", name, text));
}

void ShellVariables::spend(std::size_t bytes, int line) {
  spent_ += bytes;
  if (spent_ > most_bytes) file_.fail(line, 1, "the script's words grow beyond 64 MiB");
}

namespace {

// expression: term (+|- term)*; term: factor (*|/|% factor)*; factor: number, -factor, (expression).
class Arithmetic {
 public:
  explicit Arithmetic(const std::string& text) : text_(text) {}
  std::string value() {
    const double result = sum(0);
    skip();
    return wrong_ || at_ < text_.size() ? "" : fmt::format("{:.0f}", result);
  }

 private:
  static constexpr double largest = 9e15;
  void skip() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  char next(std::string_view wanted) {
    skip();
    return at_ < text_.size() && wanted.find(text_[at_]) != std::string_view::npos ? text_[at_++] : '\0';
  }
  double kept(double value) {
    wrong_ = wrong_ || !(value <= largest && value >= -largest);
    return wrong_ ? 0 : value;
  }
  double sum(int depth) {
    double value = product(depth);
    for (char op = next("+-"); op != 0; op = next("+-")) value = kept(op == '+' ? value + product(depth) : value - product(depth));
    return value;
  }
  double product(int depth) {
    double value = factor(depth);
    for (char op = next("*/%"); op != 0; op = next("*/%")) {
      const double other = factor(depth);
      wrong_ = wrong_ || (op != '*' && other == 0);
      if (wrong_) return 0;
      const double quotient = op == '*' ? 0 : std::trunc(value / other);
      value = kept(op == '*' ? value * other : op == '/' ? quotient : value - quotient * other);
    }
    return value;
  }
  double factor(int depth) {
    if (depth > 50) wrong_ = true;
    if (wrong_) return 0;
    if (next("-") != 0) return -factor(depth + 1);
    if (next("(") != 0) {
      const double value = sum(depth + 1);
      wrong_ = wrong_ || next(")") == 0;
      return value;
    }
    skip();
    double value = 0;
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) value = kept(value * 10 + (text_[at_++] - '0'));
    wrong_ = wrong_ || at_ == start;
    return value;
  }
  const std::string& text_;
  std::size_t at_ = 0;
  bool wrong_ = false;
};

}  // namespace

std::string shell_arithmetic(const std::string& expression) { return Arithmetic(expression).value(); }

}  // namespace rehearse::sim
