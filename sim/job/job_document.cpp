#include "sim/job/job_document.hpp"

#include <algorithm>
#include <filesystem>

#include "config/data_dir.hpp"

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

// workloads/jobs and the folders below it, in order of their names.
std::vector<std::string> folders() {
  std::vector<std::string> all{jobs_folder};
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(fs::path(config::data_dir()) / jobs_folder, failed)) {
    if (entry.is_directory(failed)) all.push_back(jobs_folder + ("/" + entry.path().filename().string()));
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

std::string job_file(const std::string& path_or_name) {
  std::error_code ignored;
  const bool is_path = path_or_name.find('/') != std::string::npos || path_or_name.ends_with(".yaml");
  if (is_path || fs::is_regular_file(path_or_name, ignored)) return path_or_name;
  for (const std::string& folder : folders()) {
    if (std::string file = config::data_file(folder, path_or_name); !file.empty()) return file;
  }
  return "";
}

std::vector<std::string> job_names() {
  std::vector<std::string> names;
  for (const std::string& folder : folders()) std::ranges::copy(config::data_names(folder), std::back_inserter(names));
  std::ranges::sort(names);
  return names;
}

}  // namespace rehearse::sim
