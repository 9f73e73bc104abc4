// The getters of Node that turn text into values.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "config/text_check.hpp"
#include "config/tree.hpp"

namespace rehearse::config {
namespace {

constexpr double largest_exact_whole = 9007199254740992.0;  // 2^53: above it doubles skip whole numbers

// A text that is one value, an option's, has no key.
std::string value_name(const Node& node) { return node.path().empty() ? "the value" : name_of(node); }

[[noreturn]] void wrong_type(const Node& node, std::string_view wanted) {
  const bool quoted = node.is_scalar() && NodeAccess::tree(node)->quoted && !NodeAccess::tree(node)->text.empty();
  node.fail(fmt::format("{} must be {}, not {}", value_name(node), wanted, content_of(node)), quoted ? "remove the quotes" : "");
}

const std::string& plain_text(const Node& node, std::string_view wanted) {
  if (!node.is_scalar() || NodeAccess::tree(node)->quoted) wrong_type(node, wanted);
  return NodeAccess::tree(node)->text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// 010 is eight to some readers of YAML and ten to others.
bool has_leading_zero(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

// A decimal number with digits on at least one side of the point; words such as inf and nan are none.
bool looks_decimal(std::string_view text) {
  const bool clean = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  return clean && !text.empty() && (is_digit(text.front()) || text.front() == '-' || text.front() == '.');
}

std::optional<double> to_double(std::string_view text) {
  double value = 0;
  if (!looks_decimal(text)) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole_text = end == text.data() + text.size();
  if (error == std::errc::result_out_of_range && whole_text) return text.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  return error == std::errc{} && whole_text ? std::optional(value) : std::nullopt;
}

// Digits alone, without point and exponent.
std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

double number_in(const Node& node, std::string_view wanted) {
  const std::string& text = plain_text(node, wanted);
  if (has_leading_zero(text)) node.fail(fmt::format("{} must be written without leading zeros, not '{}'", value_name(node), text));
  const std::optional<double> value = to_double(text);
  if (!value) wrong_type(node, wanted);
  return *value;
}

template <class Value>
[[noreturn]] void out_of_bounds(const Node& node, Value low, Value high) {
  const bool open = high == std::numeric_limits<Value>::max() || static_cast<double>(high) == HUGE_VAL;
  const std::string bounds = open ? fmt::format("at least {}", low) : fmt::format("between {} and {}", low, high);
  node.fail(fmt::format("{} must be {}, not {}", value_name(node), bounds, NodeAccess::tree(node)->text));
}

template <class Value>
void check_bounds(const Node& node, double value, Value low, Value high) {
  if (value < static_cast<double>(low) || value > static_cast<double>(high)) out_of_bounds(node, low, high);
}

}  // namespace

std::string Node::as_string() const {
  if (!is_scalar()) wrong_type(*this, "a text");
  if (holds_control_characters(impl_->text)) fail(fmt::format("{} holds control characters", value_name(*this)));
  return impl_->text;
}

std::int64_t Node::as_int(std::int64_t low, std::int64_t high) const {
  const double value = number_in(*this, "a whole number");
  if (const auto digits = to_integer(impl_->text)) {  // not through a double, which rounds beyond 2^53
    if (*digits < low || *digits > high) out_of_bounds(*this, low, high);
    return *digits;
  }
  check_bounds(*this, value, low, high);
  if (value != std::floor(value) || std::abs(value) > largest_exact_whole) wrong_type(*this, "a whole number");
  return static_cast<std::int64_t>(value);
}

double Node::as_number(double low, double high) const {
  const double value = number_in(*this, "a number");
  check_bounds(*this, value, low, high);
  if (!std::isfinite(value)) fail(fmt::format("{} is out of range: {}", value_name(*this), impl_->text));
  return value;
}

bool Node::as_bool() const {
  const std::string& text = plain_text(*this, "true or false");
  if (text != "true" && text != "false") wrong_type(*this, "true or false");
  return text == "true";
}

double Node::as_quantity(Dimension dimension, double low) const {
  if (!is_scalar()) wrong_type(*this, "a quantity with a unit");
  std::string why;
  const std::optional<double> value = parse_quantity(impl_->text, dimension, why);
  if (!value) fail(fmt::format("{}: {}", value_name(*this), why));
  if (*value < 0 && low >= 0) fail(fmt::format("{} must not be negative: '{}'", value_name(*this), impl_->text));
  if (*value < low) fail(fmt::format("{} must be at least {}, not '{}'", value_name(*this), human_quantity(low, dimension), impl_->text));
  return *value;
}

std::string Node::as_choice(const std::vector<std::string>& choices) const {
  std::string text = as_string();
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
  fail(fmt::format("{} cannot be {}", value_name(*this), content_of(*this)), suggestion(text, choices));
}

}  // namespace rehearse::config
