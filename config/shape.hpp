// What a file may say under a key, as data: hints, lists, schemas and the reference are made from it.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "config/quantity.hpp"

namespace rehearse::config {

// One key of a mapping. A template for the sake of Shape, which has keys before it is whole itself.
template <class Form>
struct ParameterOf {
  std::string name;
  Form shape;
  bool required = false;
  std::string otherwise;  // what holds where it is left out, for people; "" where nothing does
  std::string means;      // one sentence
  bool feature = false;   // a choice on its own, which `explain` switches
};
struct Shape;
using Parameter = ParameterOf<Shape>;

// What a value looks like.
struct Shape {
  enum class Kind { whole, number, truth, text, choice, quantity, list, mapping, either, anything };
  Kind kind = Kind::anything;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();  // inclusive; quantities: in SI
  Dimension dimension = Dimension::time;                                                                  // quantity
  std::vector<std::string> choices = {};  // choice; text: the words that it begins with, where only some are possible
  std::vector<Shape> parts = {};          // list: of each item; either: the alternatives
  std::vector<Parameter> keys = {};       // mapping; a name of "*" stands for any key
};

[[nodiscard]] std::vector<std::string> names_of(const std::vector<Parameter>& keys);

// For people: "whole number, 1 to 1000", "true | false", "ring | all-gather", "time (us, ms, s, ...)", "list of ...".
[[nodiscard]] std::string describe(const Shape& shape);

// The words that a choice or a truth value has, its first one first; of `either` those of its alternatives. Nothing else has any.
[[nodiscard]] std::vector<std::string> words_of(const Shape& shape);

// A key of a document by its dotted path ("parallel.tp"), of the alternatives too.
struct Place {
  std::string path;
  const Parameter* parameter = nullptr;
};

// All keys below a mapping in order, each before those below it; lists count as their items: "moe.routing.counts".
[[nodiscard]] std::vector<Place> all_places(const Shape& shape, const std::string& below = "");

// Paths of the keys of a name further down in a mapping, the shortest first; a few at most.
[[nodiscard]] std::vector<std::string> paths_to(std::string_view name, const Shape& mapping);

}  // namespace rehearse::config
