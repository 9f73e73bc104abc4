#include "sim/report/output_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/report/whole_file.hpp"

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, std::string_view why) {
  throw cannot_write(path, why, "-o takes a folder; it is created when it does not exist");
}

// The folder itself, or the nearest one above it that exists.
fs::path nearest_existing(fs::path path) {
  std::error_code ignored;  // what cannot be looked at does not exist for us
  while (!path.empty() && path != path.root_path() && !fs::exists(path, ignored)) path = path.parent_path();
  return path.empty() ? fs::path(".") : path;
}

// The folder and those above it, as far as they are missing; they go again, unless kept.
class NewFolders {
 public:
  explicit NewFolders(const fs::path& folder) {
    std::error_code error;
    // A link that leads nowhere is there, and is not ours to remove.
    for (fs::path path = folder; !path.empty() && !fs::exists(fs::symlink_status(path, error)); path = path.parent_path()) {
      missing_.push_back(path);
    }
    fs::create_directories(folder, error);
    if (!error) return;
    remove();
    refuse(folder, error.message());
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;
  ~NewFolders() { remove(); }

  void keep() { missing_.clear(); }

 private:
  // Innermost first; one that somebody else has put something into stays.
  void remove() {
    std::error_code ignored;
    for (const fs::path& path : missing_) fs::remove(path, ignored);
  }
  std::vector<fs::path> missing_;
};

// Reporters that write a file of the folder.
void for_each_file(const std::function<void(const Reporter&)>& visit) {
  for (const std::string& name : ReporterRegistry::names()) {
    const Reporter& reporter = ReporterRegistry::get(name);
    if (!reporter.file_name().empty()) visit(reporter);
  }
}

}  // namespace

OutputFolder::OutputFolder(std::string path) : path_(std::move(path)) {
  if (path_.empty()) refuse(path_, "the name is empty");
  const fs::path existing = nearest_existing(path_);
  std::error_code error;
  const bool folder = fs::is_directory(existing, error);
  if (error) refuse(path_, error.message());
  if (!folder) refuse(path_, fmt::format("'{}' is not a folder", existing.string()));
  if (access(existing.c_str(), W_OK | X_OK) != 0) refuse(path_, std::strerror(errno));
}

std::vector<std::string> OutputFolder::left_over(const Report& report) const {
  std::set<std::string_view> others, written;
  for_each_file([&](const Reporter& reporter) { (reporter.applies(report) ? written : others).insert(reporter.file_name()); });
  std::vector<std::string> paths;
  for (const std::string_view file : others) {
    const fs::path path = fs::path(path_) / file;
    std::error_code ignored;
    if (!written.contains(file) && fs::is_regular_file(path, ignored)) paths.push_back(path);
  }
  return paths;
}

std::vector<std::string> OutputFolder::write(const Report& report) const {
  std::vector<File> files;
  for_each_file([&](const Reporter& reporter) {
    if (!reporter.applies(report)) return;
    files.push_back({std::string(reporter.file_name()), [&](std::ostream& out) { reporter.write(report, out); }});
  });
  return write(files);
}

std::vector<std::string> OutputFolder::write(const std::vector<File>& files) const {
  SignalsHeld signals;
  NewFolders folders(path_);
  WholeFiles aside(signals);
  for (const File& file : files) aside.write(fs::path(path_) / file.name, file.writer);
  std::vector<std::string> paths = aside.put_in_place();
  if (!paths.empty()) folders.keep();
  return paths;
}

}  // namespace rehearse::sim
