// JSON as reporters write it. A file may be called anything: what is not UTF-8 is replaced.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace rehearse::sim {

[[nodiscard]] std::string json_text(std::string_view text);              // in quotes
void print_json(const nlohmann::ordered_json& json, std::ostream& out);  // a key a line, for people too

}  // namespace rehearse::sim
