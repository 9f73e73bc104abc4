#include "config/form.hpp"

#include <fmt/format.h>

namespace rehearse::config {

Form<double> number(double low, double high) {
  return {{.kind = Shape::Kind::number, .low = low, .high = high},
          [=](const Node& node) { return node.as_number(low, high); },
          [](const double& value) { return Node::scalar(fmt::format("{}", value)); }};
}

Form<bool> truth() {
  return {{.kind = Shape::Kind::truth},
          [](const Node& node) { return node.as_bool(); },
          [](const bool& value) { return Node::scalar(value ? "true" : "false"); }};
}

Form<std::string> text() {
  return {{.kind = Shape::Kind::text},
          [](const Node& node) { return node.as_string(); },
          [](const std::string& value) { return Node::scalar(value, true); }};
}

Form<double> quantity(Dimension dimension, double low) {
  return {{.kind = Shape::Kind::quantity, .low = low, .dimension = dimension},
          [=](const Node& node) { return node.as_quantity(dimension, low); },
          [=](const double& value) { return Node::scalar(format_quantity(value, dimension)); }};
}

Form<std::string> word(const std::vector<std::string>& words) {
  return {{.kind = Shape::Kind::choice, .choices = words},
          [words](const Node& node) { return node.as_choice(words); },
          [](const std::string& value) { return Node::scalar(value, true); }};
}

Form<bool> either_word(const std::string& no, const std::string& yes) {
  const std::vector<std::string> words{no, yes};
  return {{.kind = Shape::Kind::choice, .choices = words},
          [=](const Node& node) { return node.as_choice(words) == yes; },
          [=](const bool& value) { return Node::scalar(value ? yes : no, true); }};
}

Shape either(std::vector<Shape> shapes) { return {.kind = Shape::Kind::either, .parts = std::move(shapes)}; }

}  // namespace rehearse::config
