#include "sim/report/whole_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".partial";
constexpr std::array that_end{SIGINT, SIGTERM, SIGHUP};

// What names of files on their way to `place` begin with.
std::string beginning(const fs::path& place) { return fmt::format(".{}.", place.filename().string()); }

fs::path folder_of(const fs::path& place) { return place.has_parent_path() ? place.parent_path() : fs::path("."); }

// Nobody holds the lock of a file whose writer is dead.
void remove_if_abandoned(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(file.c_str());
  close(descriptor);
}

void remove_abandoned(const fs::path& place) {
  std::error_code failed;  // a folder that cannot be read is found out by writing to it
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder_of(place), failed)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(beginning(place)) && name.ends_with(ending)) found.push_back(entry.path());
  }
  for (const fs::path& file : found) remove_if_abandoned(file);
}

// Whether the descriptor is still the file of that name: another writer may have removed it before it was locked.
bool is_still(int descriptor, const fs::path& file) {
  struct stat opened {};
  struct stat named {};
  return fstat(descriptor, &opened) == 0 && stat(file.c_str(), &named) == 0 && opened.st_ino == named.st_ino;
}

// A new file, locked; -1 with errno when that is impossible.
int create_locked(const fs::path& file) {
  constexpr mode_t as_umask_says = 0666;
  for (;;) {
    const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, as_umask_says);
    if (descriptor < 0) return -1;
    // Where there are no locks (ENOLCK) nobody can take the file for an abandoned one either.
    if (flock(descriptor, LOCK_EX) != 0 || is_still(descriptor, file)) return descriptor;
    close(descriptor);
  }
}

}  // namespace

config::InputError cannot_write(const fs::path& path, std::string_view why, std::string_view hint) {
  return config::InputError(fmt::format("cannot write to '{}': {}", path.string(), why), hint);
}

SignalsHeld::SignalsHeld() {
  sigset_t held;
  sigemptyset(&held);
  for (const int signal : that_end) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

SignalsHeld::~SignalsHeld() {
  if (!to_the_end_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool SignalsHeld::waiting() const {
  sigset_t pending;
  sigpending(&pending);
  return std::ranges::any_of(that_end, [&](int signal) {
    struct sigaction action {};
    const bool ignored = sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;  // nohup
    return !ignored && sigismember(&pending, signal) == 1 && sigismember(&before_, signal) == 0;
  });
}

WholeFile::WholeFile(fs::path place) : place_(std::move(place)) {
  std::error_code unknown;  // what cannot be looked at is found out by writing
  if (fs::exists(place_, unknown) && fs::is_other(place_, unknown)) {
    throw cannot_write(place_, "it is a device or a pipe, whose place the file would take");
  }
  remove_abandoned(place_);
  // Another process of the same number, in another container or on another machine, may be writing the same file.
  for (int i = 0; lock_ < 0; ++i) {
    aside_ = folder_of(place_) / fmt::format("{}{}{}{}", beginning(place_), getpid(), i == 0 ? "" : fmt::format("-{}", i), ending);
    lock_ = create_locked(aside_);
    if (lock_ < 0 && errno != EEXIST) throw cannot_write(place_, std::strerror(errno));
  }
}

WholeFile::~WholeFile() {
  std::error_code ignored;  // there is nobody to tell
  if (!aside_.empty()) fs::remove(aside_, ignored);
  close(lock_);
}

void WholeFile::write(const std::function<void(std::ostream&)>& writer) {
  std::error_code ignored;  // what cannot be looked at is found out by renaming
  if (fs::is_directory(place_, ignored)) throw cannot_write(place_, std::strerror(EISDIR));
  errno = 0;
  std::ofstream stream(aside_, std::ios::binary);
  if (stream) writer(stream);
  const int cause = errno;
  stream.close();
  if (!stream) throw cannot_write(place_, std::strerror(cause != 0 ? cause : EIO));
}

std::string WholeFile::put_in_place() {
  std::error_code error;
  fs::rename(aside_, place_, error);
  if (error) throw cannot_write(place_, error.message());
  aside_.clear();
  return place_.string();
}

void WholeFiles::write(const fs::path& place, const std::function<void(std::ostream&)>& writer) {
  files_.emplace_back(place).write(writer);
}

std::vector<std::string> WholeFiles::put_in_place() {
  std::vector<std::string> paths;
  if (signals_.waiting()) return paths;  // it ends the program as soon as the files are gone
  for (WholeFile& file : files_) paths.push_back(file.put_in_place());
  signals_.until_the_end();
  return paths;
}

}  // namespace rehearse::sim
