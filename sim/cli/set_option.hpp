// --set KEY=VALUE, wherever a command takes it.
#pragma once

#include <string>
#include <utility>

namespace rehearse::cli {

// Throws config::InputError when there is no key or no '='.
[[nodiscard]] std::pair<std::string, std::string> parse_set(const std::string& text);

}  // namespace rehearse::cli
