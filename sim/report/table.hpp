// Aligned text tables for the console.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace rehearse::sim {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::right;
};

// Columns are two spaces apart, no line ends in a space. A row may be shorter than the header.
struct Table {
  std::vector<Column> columns = {};
  std::vector<std::vector<std::string>> rows = {};
  bool bold_header = false;
  void print(std::ostream& out) const;
};

}  // namespace rehearse::sim
