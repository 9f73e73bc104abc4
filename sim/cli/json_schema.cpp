#include "sim/cli/json_schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "config/quantity.hpp"

namespace rehearse::cli {
namespace {

using config::Shape;
using Json = nlohmann::ordered_json;

// A number and one of the units, which the space between them is not needed for.
std::string pattern_of(const Shape& shape) {
  return fmt::format("^\\s*{}[0-9.][0-9.eE+-]*\\s*({})\\s*$", shape.low < 0 ? "-?" : "", fmt::join(config::units_of(shape.dimension), "|"));
}

void add_bounds(const Shape& shape, Json& out) {
  if (shape.low > -HUGE_VAL) out["minimum"] = shape.low;
  if (shape.high < HUGE_VAL) out["maximum"] = shape.high;
}

// Keys of the name "*" are any others.
Json mapping_schema(const Shape& shape) {
  Json out{{"type", "object"}};
  Json properties = Json::object(), required = Json::array(), others = false;
  for (const config::Parameter& key : shape.keys) {
    Json schema = json_schema(key.shape);
    if (!key.means.empty()) schema["description"] = key.means + (key.otherwise.empty() ? "" : fmt::format(" Default: {}.", key.otherwise));
    if (key.name == "*") {
      others = std::move(schema);
      continue;
    }
    properties[key.name] = std::move(schema);
    if (key.required) required.push_back(key.name);
  }
  const bool may_be_like_another = properties.contains("like");  // which then has what is required
  out["properties"] = std::move(properties);
  if (!required.empty() && may_be_like_another) {
    out["anyOf"] = Json::array({Json{{"required", std::move(required)}}, Json{{"required", Json::array({"like"})}}});
  } else if (!required.empty()) {
    out["required"] = std::move(required);
  }
  out["additionalProperties"] = std::move(others);
  return out;
}

Json alternatives(const std::vector<Shape>& shapes) {
  Json any = Json::array();
  for (const Shape& shape : shapes) any.push_back(json_schema(shape));
  return {{"anyOf", std::move(any)}};
}

}  // namespace

Json json_schema(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::whole:
    case Shape::Kind::number: {
      Json out{{"type", shape.kind == Shape::Kind::whole ? "integer" : "number"}};
      add_bounds(shape, out);
      return out;
    }
    case Shape::Kind::truth:
      return {{"type", "boolean"}};
    case Shape::Kind::text:
      if (!shape.choices.empty()) return {{"type", "string"}, {"pattern", fmt::format("^\\s*({})(\\s|$)", fmt::join(shape.choices, "|"))}};
      // YAML may take it for a number.
      return {{"type", Json::array({"string", "number", "boolean"})}};
    case Shape::Kind::choice:
      return {{"enum", shape.choices}};
    case Shape::Kind::quantity:
      return {{"type", "string"}, {"pattern", pattern_of(shape)}};
    case Shape::Kind::list:
      return {{"type", "array"}, {"items", json_schema(shape.parts.front())}};
    case Shape::Kind::mapping:
      return mapping_schema(shape);
    case Shape::Kind::either:
      return alternatives(shape.parts);
    case Shape::Kind::anything:
      break;
  }
  return Json::object();
}

}  // namespace rehearse::cli
