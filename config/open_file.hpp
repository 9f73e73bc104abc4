// Files to be read.
#pragma once

#include <fstream>
#include <string>

namespace rehearse::config {

// Throws InputError with the reason where it cannot be: "cannot read 'x.csv': No such file or directory".
[[nodiscard]] std::ifstream open_file(const std::string& path);

}  // namespace rehearse::config
