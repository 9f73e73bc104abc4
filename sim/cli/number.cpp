#include "sim/cli/number.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "config/input_error.hpp"

namespace rehearse::cli {
namespace {

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::uint64_t parse_seed(std::string_view text) {
  std::uint64_t seed = 0;
  if (!parse(text, seed)) throw config::InputError(fmt::format("--seed takes a whole number from 0 to 2^53, not '{}'", text));
  return seed;
}

int parse_count(std::string_view option, std::string_view text, int low, int high) {
  double count = 0;  // 1e6 is a whole number here as in job files; an int fits into a double
  if (parse(text, count) && count >= low && count <= high && count == std::floor(count)) return static_cast<int>(count);
  throw config::InputError(fmt::format("{} takes a whole number from {} to {}, not '{}'", option, low, high, text));
}

double parse_percentage(std::string_view option, std::string_view text) {
  std::string_view digits = text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double percent = 0;
  if (!parse(digits, percent) || !std::isfinite(percent) || percent < 0) {
    throw config::InputError(fmt::format("{} takes a percentage such as 5 or 5%, not '{}'", option, text));
  }
  return percent / 100;
}

}  // namespace rehearse::cli
