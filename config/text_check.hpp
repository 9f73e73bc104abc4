// Is this a text at all? Finds what YAML forbids before the parser sees it.
#pragma once

#include "config/tree.hpp"

namespace rehearse::config {

// Throws InputError at the first byte that is not UTF-8 or is a control character.
void check_encoding(const std::string& text, const Source& source);

// Escapes in quoted texts may put there what no file holds: characters that steer a terminal, other than tabs and ends of lines.
[[nodiscard]] bool holds_control_characters(std::string_view text);

// The place of a byte.
[[nodiscard]] Position position_of(std::string_view text, std::size_t at, const Source& source);

// The same, and at the first line that a tab indents, and where a .json
// file opens what it does not close.
void check_text(const std::string& text, const Source& source);

}  // namespace rehearse::config
