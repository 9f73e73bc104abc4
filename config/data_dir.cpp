#include "config/data_dir.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace rehearse::config {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "workloads", ignored) && fs::is_directory(folder / "platforms", ignored);
}

fs::path installed_data() {
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed);
  return (failed ? fs::path(".") : binary.parent_path()) / ".." / "share" / "rehearse";
}

}  // namespace

std::string data_dir() {
  if (const char* chosen = std::getenv("REHEARSE_DATA"); chosen != nullptr && *chosen != '\0') return chosen;
  if (holds_data(REHEARSE_SOURCE_DIR)) return REHEARSE_SOURCE_DIR;
  return installed_data().lexically_normal().string();
}

std::vector<std::string> data_names(std::string_view folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(fs::path(data_dir()) / folder, failed)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string data_file(std::string_view folder, std::string_view name) {
  if (name.empty() || name.find('/') != std::string_view::npos) return "";
  const fs::path path = fs::path(data_dir()) / folder / (std::string(name) + ".yaml");
  std::error_code failed;
  return fs::is_regular_file(path, failed) ? path.string() : "";
}

}  // namespace rehearse::config
