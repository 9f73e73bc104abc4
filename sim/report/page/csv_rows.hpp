// Rows of numbers out of a CSV file that rehearse has written.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::sim::page {

// Calls row() with each line after the first as numbers. Throws config::InputError, which names the line, where there are fewer than
// `columns` or something else than a number.
void for_each_row(const std::string& text, std::string_view file, std::size_t columns,
                  const std::function<void(std::span<const double>)>& row);

}  // namespace rehearse::sim::page
