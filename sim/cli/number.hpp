// Numbers on the command line. The whole text must be a number in range; errors name the option.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse::cli {

// A whole number; the job decides which are too large.
[[nodiscard]] std::uint64_t parse_seed(std::string_view text);
// A whole number from `low` to `high`.
[[nodiscard]] int parse_count(std::string_view option, std::string_view text, int low, int high);
// "5" or "5%": 0.05.
[[nodiscard]] double parse_percentage(std::string_view option, std::string_view text);

}  // namespace rehearse::cli
