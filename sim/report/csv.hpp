// Rows of comma-separated values (RFC 4180, lines ended by LF). Numbers are written so that reading them back gives the same double.
#pragma once

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>

namespace rehearse::sim {

// The field, in quotes when it holds a comma, a quote or a line break.
[[nodiscard]] std::string csv_field(std::string_view text);

inline std::string csv_cell(std::string_view text) { return csv_field(text); }
inline std::string csv_cell(double value) { return fmt::format("{}", value); }
inline std::string csv_cell(int value) { return fmt::format("{}", value); }

template <class First, class... Rest>
void csv_row(std::ostream& out, const First& first, const Rest&... rest) {
  out << csv_cell(first);
  ((out << ',' << csv_cell(rest)), ...);
  out << '\n';
}

}  // namespace rehearse::sim
