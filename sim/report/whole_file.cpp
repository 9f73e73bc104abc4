#include "sim/report/whole_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rehearse::sim {
namespace {

std::filesystem::path aside(const std::filesystem::path& place) {
  return place.parent_path() / fmt::format(".{}.{}.partial", place.filename().string(), getpid());
}

}  // namespace

config::InputError cannot_write(const std::filesystem::path& path, std::string_view why, std::string_view hint) {
  return config::InputError(fmt::format("cannot write to '{}': {}", path.string(), why), hint);
}

SignalsHeld::SignalsHeld() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, &before_);
}

SignalsHeld::~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

WholeFile::WholeFile(std::filesystem::path place) : place_(std::move(place)), aside_(aside(place_)) {}

WholeFile::~WholeFile() {
  std::error_code ignored;  // there is nobody to tell
  std::filesystem::remove(aside_, ignored);
}

void WholeFile::write(const std::function<void(std::ostream&)>& writer) {
  errno = 0;
  stream_.open(aside_, std::ios::binary);
  if (stream_) writer(stream_);
  const int cause = errno;
  stream_.close();
  if (!stream_) throw cannot_write(place_, std::strerror(cause != 0 ? cause : EIO));
}

std::string WholeFile::put_in_place() {
  std::error_code error;
  std::filesystem::rename(aside_, place_, error);
  if (error) throw cannot_write(place_, error.message());
  return place_.string();
}

}  // namespace rehearse::sim
