#include "config/open_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "config/input_error.hpp"

namespace rehearse::config {

std::ifstream open_file(const std::string& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (folder || !in) throw InputError(fmt::format("cannot read '{}': {}", path, std::strerror(folder ? EISDIR : errno != 0 ? errno : EIO)));
  return in;
}

}  // namespace rehearse::config
