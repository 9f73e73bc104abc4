// Tables in text files (CSV): what is wrong in one is refused at its line and column.
#pragma once

#include <cstdint>
#include <deque>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/input_error.hpp"
#include "config/node.hpp"

namespace rehearse::config {

// A line of titles and rows of as many cells, separated by commas; blanks around a cell do not count, nor do empty lines and those that
// begin with '#'. A cell in double quotes may hold commas, and quotes as two (RFC 4180), but no end of line. Read row by row, so that a
// table may be larger than memory.
class Table {
 public:
  // The file that a scalar names, relative to the scalar's own. Refuses: a file that cannot be read, at the scalar; one without titles.
  explicit Table(const Node& reference);
  // A text; `name` is what positions show.
  Table(const std::string& text, std::string name);
  // What is in a stream.
  Table(std::unique_ptr<std::istream> in, std::string name);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() = default;

  [[nodiscard]] const std::vector<std::string>& titles() const { return titles_; }
  [[nodiscard]] std::optional<std::size_t> column(std::string_view title) const;
  // Refuses titles that are not among `known` or stand twice, and a table without one of the `needed`.
  void check_titles(const std::vector<std::string>& known, const std::vector<std::string>& needed) const;

  // Goes to the next row; false after the last. Refuses a row with more or fewer cells than there are titles.
  bool next();
  // Of the row that it is at.
  [[nodiscard]] std::string_view cell(std::size_t column) const { return cells_[column]; }
  [[nodiscard]] Position where() const { return {name_, line_number_, 1}; }
  // Bounds are inclusive. `whose` begins the message of a refusal: "device 'phone': ".
  [[nodiscard]] double number(std::size_t column, double low, double high, std::string_view whose = {}) const;
  [[nodiscard]] std::int64_t whole(std::size_t column, double low, double high, std::string_view whose = {}) const;

  [[nodiscard]] double number(std::size_t column) const;  // any

  // Throws InputError at the line that it is at, or at one of its cells.
  [[noreturn]] void fail(std::string_view why, std::string_view hint = {}) const;
  [[noreturn]] void fail_at(std::size_t column, std::string_view why, std::string_view hint = {}) const;

 private:
  bool next_line();
  void split();
  std::size_t split_quoted(std::size_t at);

  std::unique_ptr<std::istream> in_;
  std::string name_, line_;
  int line_number_ = 0;
  std::vector<std::string> titles_;
  std::vector<std::string_view> cells_;  // into line_, or into unquoted_
  std::vector<std::size_t> offsets_;     // of the cells in line_
  std::deque<std::string> unquoted_;
};

// A text that is a number from beginning to end, and finite.
[[nodiscard]] std::optional<double> number_in(std::string_view text);

}  // namespace rehearse::config
