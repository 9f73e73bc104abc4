// JSON that the program has written and somebody may have broken since.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rehearse::sim {

// Throws config::InputError with line, column and the line where the text is not JSON; `path` names it, `hint` says what to give instead.
[[nodiscard]] nlohmann::ordered_json parse_json(const std::string& text, const std::string& path, const std::string& hint);

// What the library says of a value that is not as expected, without its own numbers: "key 'step_s' not found".
[[nodiscard]] std::string reason_of(const nlohmann::json::exception& error);

}  // namespace rehearse::sim
