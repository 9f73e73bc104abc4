// What the program may assume about where it prints.
#pragma once

#include <string>

namespace rehearse::cli {

enum class Stream { out = 1, err = 2 };  // their file descriptors

[[nodiscard]] bool is_terminal(Stream stream);
// A terminal that knows colours, and NO_COLOR (https://no-color.org) is unset or empty.
[[nodiscard]] bool colour_allowed(Stream stream);

// Writes a result to standard output at once. A reader that went away (`| head`) is no error; anything else throws config::InputError.
void print_result(const std::string& text);

}  // namespace rehearse::cli
