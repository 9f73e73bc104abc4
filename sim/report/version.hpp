// The version of the program, as CMake's project() states it.
#pragma once

#include <string_view>

namespace rehearse::sim {

[[nodiscard]] std::string_view version();  // "0.1.0"

}  // namespace rehearse::sim
