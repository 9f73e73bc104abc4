#include "config/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "config/open_file.hpp"
#include "config/reference.hpp"

namespace rehearse::config {
namespace {

// What is longer is no row of a table, but a file of another kind.
constexpr std::size_t longest_line = 100'000;

std::unique_ptr<std::istream> opened(const Node& reference) {
  try {
    return std::make_unique<std::ifstream>(open_file(referenced_path(reference)));
  } catch (const InputError& problem) {
    reference.fail(problem.message(), problem.hint());
  }
}

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed_cell(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return text.substr(0, 0);
  return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

}  // namespace

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Table::Table(const Node& reference) : Table(opened(reference), referenced_path(reference)) {}

Table::Table(const std::string& text, std::string name) : Table(std::make_unique<std::istringstream>(text), std::move(name)) {}

Table::Table(std::unique_ptr<std::istream> in, std::string name) : in_(std::move(in)), name_(std::move(name)) {
  if (!next_line()) {
    line_number_ = 1;
    fail("the file must begin with the titles of its columns");
  }
  split();
  titles_.assign(cells_.begin(), cells_.end());
}

std::optional<std::size_t> Table::column(std::string_view title) const {
  const auto found = std::ranges::find(titles_, title);
  if (found == titles_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - titles_.begin());
}

void Table::check_titles(const std::vector<std::string>& known, const std::vector<std::string>& needed) const {
  for (std::size_t i = 0; i < titles_.size(); ++i) {
    if (std::ranges::find(known, titles_[i]) == known.end()) {
      fail_at(i, fmt::format("unknown column {}", shown(titles_[i])), suggestion(titles_[i], known));
    }
    if (*column(titles_[i]) != i) fail_at(i, fmt::format("column '{}' stands twice", titles_[i]));
  }
  for (const std::string& title : needed) {
    if (!column(title)) fail(fmt::format("column '{}' is missing", title), fmt::format("known: {}", fmt::join(known, ", ")));
  }
}

bool Table::next() {
  if (!next_line()) return false;
  split();
  if (cells_.size() != titles_.size()) {
    fail(fmt::format("{} in a table of {} columns", cells_.size() == 1 ? "1 cell" : fmt::format("{} cells", cells_.size()), titles_.size()),
         fmt::format("{}", fmt::join(titles_, ",")));
  }
  return true;
}

bool Table::next_line() {
  do {
    line_.clear();
    int got = in_->get();
    if (got == std::istream::traits_type::eof()) return false;
    ++line_number_;
    for (; got != '\n' && got != std::istream::traits_type::eof(); got = in_->get()) {
      line_ += static_cast<char>(got);
      if (line_.size() > longest_line) {
        line_.resize(60);
        fail("this line is too long for a row of a table");
      }
    }
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (line_number_ == 1 && line_.starts_with(byte_order_mark)) line_.erase(0, byte_order_mark.size());
  } while (trimmed_cell(line_).empty() || line_.starts_with('#'));
  return true;
}

void Table::split() {
  cells_.clear();
  offsets_.clear();
  unquoted_.clear();
  for (std::size_t at = 0;; ++at) {
    at = std::min(line_.find_first_not_of(blanks, at), line_.size());
    offsets_.push_back(at);
    const bool quoted = at < line_.size() && line_[at] == '"';
    const std::size_t comma = std::min(line_.find(',', quoted ? split_quoted(at) : at), line_.size());
    if (!quoted) cells_.push_back(trimmed_cell(std::string_view(line_).substr(at, comma - at)));
    if (comma == line_.size()) return;
    at = comma;
  }
}

// The cell whose quote is at `at`; returns where it ends.
std::size_t Table::split_quoted(std::size_t at) {
  std::string& cell = unquoted_.emplace_back();
  cells_.emplace_back();
  std::size_t from = at + 1;
  while (true) {
    const std::size_t quote = line_.find('"', from);
    if (quote == std::string::npos) fail_at(cells_.size() - 1, "a quote that is not closed in its line");
    cell += line_.substr(from, quote - from);
    from = quote + 2;
    if (quote + 1 < line_.size() && line_[quote + 1] == '"') {
      cell += '"';
      continue;
    }
    const std::string_view after = trimmed_cell(std::string_view(line_).substr(quote + 1, line_.find(',', quote) - quote - 1));
    if (!after.empty()) fail_at(cells_.size() - 1, fmt::format("{} behind a closed quote", shown(after)));
    cells_.back() = cell;
    return quote;
  }
}

double Table::number(std::size_t column, double low, double high, std::string_view whose) const {
  const std::optional<double> value = number_in(cells_[column]);
  if (!value || *value < low || *value > high) {
    fail_at(column,
            fmt::format("{}{} must be a number from {:g} to {:g}, not {}", whose, titles_[column], low, high, shown(cells_[column])));
  }
  return *value;
}

double Table::number(std::size_t column) const {
  const std::optional<double> value = number_in(cells_[column]);
  if (!value) fail_at(column, fmt::format("{} must be a number, not {}", titles_[column], shown(cells_[column])));
  return *value;
}

std::int64_t Table::whole(std::size_t column, double low, double high, std::string_view whose) const {
  const double value = number(column, low, high, whose);
  if (value != std::floor(value)) {
    fail_at(column, fmt::format("{}{} must be a whole number, not {}", whose, titles_[column], shown(cells_[column])));
  }
  return static_cast<std::int64_t>(value);
}

void Table::fail(std::string_view why, std::string_view hint) const { throw InputError({name_, line_number_, 1}, why, line_, hint); }

void Table::fail_at(std::size_t column, std::string_view why, std::string_view hint) const {
  throw InputError({name_, line_number_, static_cast<int>(offsets_[column]) + 1}, why, line_, hint);
}

}  // namespace rehearse::config
