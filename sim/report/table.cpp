#include "sim/report/table.hpp"

#include <algorithm>
#include <ostream>

namespace rehearse::sim {
namespace {

using Widths = std::vector<std::size_t>;

Widths widths_of(const Table& table) {
  Widths widths;
  for (const Column& column : table.columns) widths.push_back(column.title.size());
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths.at(i) = std::max(widths.at(i), row[i].size());
  }
  return widths;
}

std::string line_of(const Table& table, const Widths& widths, const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    if (i > 0) line += "  ";
    line += table.columns[i].align == Align::left ? cells[i] + padding : padding + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::vector<std::string> titles_of(const Table& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

}  // namespace

void Table::print(std::ostream& out) const {
  const Widths widths = widths_of(*this);
  const std::string header = line_of(*this, widths, titles_of(*this));
  out << (bold_header ? "\033[1m" + header + "\033[0m" : header) << '\n';
  for (const auto& row : rows) out << line_of(*this, widths, row) << '\n';
}

}  // namespace rehearse::sim
