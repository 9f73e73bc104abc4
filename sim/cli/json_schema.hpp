// A shape as a JSON Schema.
#pragma once

#include <nlohmann/json.hpp>

#include "config/shape.hpp"

namespace rehearse::cli {

// Of draft 2020-12, without $schema and title. What a schema can see: keys, types, ranges, choices and units.
[[nodiscard]] nlohmann::ordered_json json_schema(const config::Shape& shape);

}  // namespace rehearse::cli
