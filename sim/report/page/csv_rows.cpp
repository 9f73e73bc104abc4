#include "sim/report/page/csv_rows.hpp"

#include <fmt/format.h>

#include <charconv>

#include "config/input_error.hpp"

namespace rehearse::sim::page {

void for_each_row(const std::string& text, std::string_view file, std::size_t columns,
                  const std::function<void(std::span<const double>)>& row) {
  std::vector<double> values;
  int number = 1;
  for (std::size_t at = text.find('\n'); at != std::string::npos && at + 1 < text.size(); at = text.find('\n', at + 1)) {
    ++number;
    values.clear();
    const char* from = text.data() + at + 1;
    const char* const end = text.data() + text.size();
    for (; from < end; ++from) {
      double value = 0;
      const auto [after, error] = std::from_chars(from, end, value);
      if (error != std::errc()) break;
      values.push_back(value);
      from = after;
      if (from == end || *from != ',') break;
    }
    if (values.size() < columns || (from < end && *from != '\n')) {
      throw config::InputError(fmt::format("{}:{}: {} numbers expected", file, number, columns));
    }
    row(values);
  }
}

}  // namespace rehearse::sim::page
