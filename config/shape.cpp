#include "config/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "config/tree.hpp"

namespace rehearse::config {
namespace {

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "time";
    case Dimension::bytes:
      return "bytes";
    case Dimension::bandwidth:
      return "bandwidth";
    case Dimension::power:
      return "power";
    case Dimension::frequency:
      return "frequency";
    case Dimension::length:
      return "length";
    case Dimension::level:
      return "level";
    case Dimension::level_density:
      return "level per Hertz";
    case Dimension::chance:
      return "chance";
    case Dimension::compute_rate:
    case Dimension::rate:
      break;
  }
  return "rate";
}

std::string bound(double value) {
  return value == std::floor(value) && std::abs(value) < 1e15 ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
}

std::string bounds(const Shape& shape) {
  if (shape.low > -HUGE_VAL && shape.high < HUGE_VAL) return fmt::format(", {} to {}", bound(shape.low), bound(shape.high));
  return shape.low > -HUGE_VAL ? fmt::format(", from {}", bound(shape.low)) : "";
}

std::string alternatives(const std::vector<Shape>& shapes) {
  std::vector<std::string> texts;
  texts.reserve(shapes.size());
  for (const Shape& shape : shapes) texts.push_back(describe(shape));
  return fmt::format("{}", fmt::join(texts, " | "));
}

// The keys of a long mapping follow on rows of their own.
std::string key_names(const std::vector<Parameter>& keys) {
  constexpr std::size_t most = 6;
  if (keys.size() > most) return "mapping";
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const Parameter& key : keys) names.push_back(key.name == "*" ? "..." : key.name);
  return fmt::format("{{{}}}", fmt::join(names, ", "));
}

}  // namespace

std::vector<std::string> names_of(const std::vector<Parameter>& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const Parameter& key : keys) names.push_back(key.name);
  return names;
}

std::string describe(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::whole:
      return "whole number" + bounds(shape);
    case Shape::Kind::number:
      return "number" + bounds(shape);
    case Shape::Kind::truth:
      return "true | false";
    case Shape::Kind::text:
      return shape.choices.empty() ? "text" : fmt::format("{} ...", fmt::join(shape.choices, " ... | "));
    case Shape::Kind::choice:
      return fmt::format("{}", fmt::join(shape.choices, " | "));
    case Shape::Kind::quantity:
      return fmt::format("{} ({})", name_of(shape.dimension), example_of(shape.dimension));
    case Shape::Kind::list:
      return "list of: " + alternatives(shape.parts);
    case Shape::Kind::mapping:
      return key_names(shape.keys);
    case Shape::Kind::either:
      return alternatives(shape.parts);
    case Shape::Kind::anything:
      break;
  }
  return "anything";
}

std::vector<std::string> words_of(const Shape& shape) {
  if (shape.kind == Shape::Kind::choice) return shape.choices;
  if (shape.kind == Shape::Kind::truth) return {"false", "true"};
  std::vector<std::string> words;
  if (shape.kind != Shape::Kind::either) return words;
  for (const Shape& part : shape.parts) {
    for (std::string& word : words_of(part)) words.push_back(std::move(word));
  }
  return words;
}

std::vector<Place> all_places(const Shape& shape, const std::string& below) {
  std::vector<Place> places;
  const auto add = [&](std::vector<Place> more) { places.insert(places.end(), more.begin(), more.end()); };
  for (const Parameter& key : shape.keys) {
    const std::string path = join_path(below, key.name);
    places.push_back({path, &key});
    add(all_places(key.shape, path));
  }
  for (const Shape& part : shape.parts) add(all_places(part, below));
  return places;
}

std::vector<std::string> paths_to(std::string_view name, const Shape& mapping) {
  constexpr std::size_t most = 3;
  std::vector<std::string> paths;
  for (const Place& place : all_places(mapping)) {
    const bool is_known = std::ranges::find(paths, place.path) != paths.end();
    if (place.parameter->name == name && place.path != name && place.path.find('*') == std::string::npos && !is_known)
      paths.push_back(place.path);
  }
  std::ranges::stable_sort(paths, {}, [](const std::string& path) { return std::ranges::count(path, '.'); });
  paths.resize(std::min(paths.size(), most));
  return paths;
}

}  // namespace rehearse::config
