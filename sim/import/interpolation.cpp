#include "sim/import/interpolation.hpp"

#include <fmt/format.h>

#include <vector>

#include "sim/import/fields.hpp"

namespace rehearse::sim {
namespace {

using config::Node;

constexpr int deepest = 20;

// Where the brace of a leading "${" is closed; the text's size where it is not.
std::size_t closing(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return text.size();
}

// A neighbour of the value at `place`.
std::string beside(const std::string& place, const std::string& name) {
  const std::size_t dot = place.rfind('.');
  return dot == std::string::npos ? name : place.substr(0, dot + 1) + name;
}

// At commas outside of braces.
std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> out{""};
  int depth = 0;
  for (const char c : text) {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == ',' && depth == 0) {
      out.emplace_back();
    } else if (c != ' ' || !out.back().empty()) {
      out.back() += c;
    }
  }
  return out;
}

}  // namespace

std::optional<Node> Interpolation::at(std::string_view path, const Node& map) const {
  if (map.is_map()) require_mappings(map, path);
  const auto found = map.is_map() ? map.find_path(path) : std::nullopt;
  return found ? resolved(*found) : std::nullopt;
}

std::optional<Node> Interpolation::resolved(const Node& value, const std::string& place, int depth) const {
  if (value.is_null()) return std::nullopt;
  if (!value.is_scalar()) return value;
  const std::string text = value.as_string();
  if (!text.starts_with("${")) return value;
  if (closing(text) + 1 != text.size()) return std::nullopt;  // a text with something put in: a path or a name
  if (depth > deepest) value.fail("this refers to itself, or through more than 20 others");
  const std::string inside = text.substr(2, text.size() - 3);
  if (inside.find(':') != std::string::npos) return called(value, inside, place, depth);
  const std::string path = inside.starts_with('.')                                      ? beside(place, inside.substr(1))
                           : inside.starts_with("training.") && !root_.find("training") ? inside.substr(9)
                                                                                        : inside;
  const auto found = root_.find_path(path);
  if (!found) return std::nullopt;  // of another file, or the launcher's
  return resolved(*found, path, depth + 1);
}

std::optional<Node> Interpolation::called(const Node& value, const std::string& inside, const std::string& place, int depth) const {
  const std::string function = inside.substr(0, inside.find(':'));
  if (function != "multiply" && function != "int_div" && function != "divide_floor" && function != "divide_ceil") return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const std::string& argument : split_arguments(inside.substr(inside.find(':') + 1))) {
    const auto number = resolved(Node::scalar(argument), place, depth + 1);
    if (!number) return std::nullopt;
    numbers.push_back(number->as_int(0, 1'000'000'000));
  }
  if (numbers.size() != 2) value.fail(fmt::format("{} takes two numbers", function));
  if (function == "multiply") return Node::scalar(std::to_string(numbers[0] * numbers[1]));
  if (numbers[1] == 0) value.fail("a division by zero");
  const std::int64_t up = function == "divide_ceil" ? numbers[1] - 1 : 0;
  return Node::scalar(std::to_string((numbers[0] + up) / numbers[1]));
}

}  // namespace rehearse::sim
