// Files named in other files.
#pragma once

#include <string>

#include "config/node.hpp"

namespace rehearse::config {

// The path that a scalar names, relative to the file it stands in.
[[nodiscard]] std::string referenced_path(const Node& scalar);

// That file, loaded. A file that cannot be read is reported at the scalar; what is wrong inside it, in that file.
[[nodiscard]] Node load_referenced(const Node& scalar);

}  // namespace rehearse::config
