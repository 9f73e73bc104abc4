// How a value is written in a file: read with its checks, written back, described. The bricks that keys are declared with
// (config/keys.hpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/names.hpp"
#include "config/node.hpp"
#include "config/shape.hpp"

namespace rehearse::config {

template <class T>
struct Form {
  using Value = T;
  Shape shape;
  std::function<Value(const Node&)> read;        // refuses at the node what the shape excludes
  std::function<Node(const Value&)> write = {};  // as it is read; none: the file's own words are kept

  // The same with one more check, which refuses at the node.
  [[nodiscard]] Form checked(std::function<void(const Node&, const Value&)> check) const {
    Form out = *this;
    out.read = [read = read, check = std::move(check)](const Node& node) {
      Value value = read(node);
      check(node, value);
      return value;
    };
    return out;
  }
};

template <class Whole = int>
[[nodiscard]] Form<Whole> whole(std::int64_t low, std::int64_t high) {
  return {{.kind = Shape::Kind::whole, .low = static_cast<double>(low), .high = static_cast<double>(high)},
          [=](const Node& node) { return static_cast<Whole>(node.as_int(low, high)); },
          [](const Whole& value) { return Node::scalar(std::to_string(value)); }};
}
[[nodiscard]] Form<double> number(double low, double high);
[[nodiscard]] Form<bool> truth();
[[nodiscard]] Form<std::string> text();
[[nodiscard]] Form<double> quantity(Dimension dimension, double low = 0);
// One of the words.
[[nodiscard]] Form<std::string> word(const std::vector<std::string>& words);
// A truth value by two words of its own, the one for false first.
[[nodiscard]] Form<bool> either_word(const std::string& no, const std::string& yes);

template <class Choice>
[[nodiscard]] Form<Choice> choice(const Names<Choice>& names) {
  return {{.kind = Shape::Kind::choice, .choices = names.words()},
          [&names](const Node& node) { return names.read(node); },
          [&names](const Choice& value) { return Node::scalar(std::string(names.of(value)), true); }};
}

template <class Item>
[[nodiscard]] Form<std::vector<Item>> list_of(const Form<Item>& item) {
  return {{.kind = Shape::Kind::list, .parts = {item.shape}},
          [item](const Node& node) {
            std::vector<Item> all;
            for (const Node& entry : node.items()) all.push_back(item.read(entry));
            return all;
          },
          [item](const std::vector<Item>& values) {
            std::vector<Node> nodes;
            nodes.reserve(values.size());
            for (const Item& value : values) nodes.push_back(item.write(value));
            return Node::list(nodes);
          }};
}

// A word that stands for one value, or the form of all others.
template <class Value>
[[nodiscard]] Form<Value> word_or(const std::string& word, const Value& meaning, const Form<Value>& other) {
  return {{.kind = Shape::Kind::either, .parts = {{.kind = Shape::Kind::choice, .choices = {word}}, other.shape}},
          [=](const Node& node) { return node.is_scalar() && node.as_string() == word ? meaning : other.read(node); },
          [=](const Value& value) { return value == meaning ? Node::scalar(word, true) : other.write(value); }};
}

// The same where the word stands for no value.
template <class Value>
[[nodiscard]] Form<std::optional<Value>> word_or_none(const std::string& word, const Form<Value>& other) {
  return {{.kind = Shape::Kind::either, .parts = {{.kind = Shape::Kind::choice, .choices = {word}}, other.shape}},
          [=](const Node& node) {
            return node.is_scalar() && node.as_string() == word ? std::nullopt : std::optional<Value>(other.read(node));
          },
          [=](const std::optional<Value>& value) { return value ? other.write(*value) : Node::scalar(word, true); }};
}

// Alternatives of one value, described together; `read` and `write` tell them apart.
[[nodiscard]] Shape either(std::vector<Shape> shapes);

}  // namespace rehearse::config
