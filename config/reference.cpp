#include "config/reference.hpp"

#include <filesystem>

namespace rehearse::config {

std::string referenced_path(const Node& scalar) {
  const std::filesystem::path path = scalar.as_string();
  const std::string folder = scalar.file_dir();
  return path.is_absolute() || folder == "." ? path.string() : (folder / path).lexically_normal().string();
}

Node load_referenced(const Node& scalar) {
  try {
    return Node::load_file(referenced_path(scalar));
  } catch (const InputError& problem) {
    if (!problem.where().file.empty()) throw;
    scalar.fail(problem.message(), problem.hint());
  }
}

}  // namespace rehearse::config
