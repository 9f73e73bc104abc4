#include "config/data_dir.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "config/input_error.hpp"

namespace rehearse::config {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "workloads", ignored) && fs::is_directory(folder / "platforms", ignored);
}

[[noreturn]] void refuse(const std::string& why) {
  throw InputError(why, "set REHEARSE_DATA to the folder that holds them, workloads/ and platforms/");
}

}  // namespace

fs::path install_prefix() {
  Dl_info holder{};
  const bool known = dladdr(reinterpret_cast<const void*>(&data_dir), &holder) != 0;
  const fs::path code = known ? holder.dli_fname : "";
  if (code.extension() == ".so") return code.parent_path() / ".." / ".." / "..";
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  return (failed ? fs::path(".") : program.parent_path()) / "..";
}

namespace {

std::string found_data() {
  const fs::path installed = (install_prefix() / "share" / "rehearse").lexically_normal();
  if (holds_data(installed)) return installed.string();
  for (const char* place : {REHEARSE_SOURCE_DIR, "/usr/local/share/rehearse", "/usr/share/rehearse"}) {
    if (holds_data(place)) return place;
  }
  refuse(fmt::format("the ready-made files are not in '{}'", installed.string()));
}

}  // namespace

std::string data_dir() {
  if (const char* chosen = std::getenv("REHEARSE_DATA"); chosen != nullptr && *chosen != '\0') {
    if (!holds_data(chosen)) refuse(fmt::format("REHEARSE_DATA: there are no folders workloads and platforms in '{}'", chosen));
    return chosen;
  }
  static const std::string found = found_data();  // once: every name of a model or a GPU asks
  return found;
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
