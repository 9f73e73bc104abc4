#include "sim/engine/child_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rehearse::sim {
namespace {

void write_all(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

std::string read_all(int fd) {
  std::string bytes;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
}

[[noreturn]] void child(int fd, const std::function<std::vector<double>()>& work) {
  try {
    const std::vector<double> answer = work();
    write_all(fd, "+", 1);
    write_all(fd, answer.data(), answer.size() * sizeof(double));
  } catch (const std::exception& e) {
    write_all(fd, "-", 1);
    write_all(fd, e.what(), std::strlen(e.what()));
  }
  _exit(0);  // no destructors: the parent's state is not ours to end
}

}  // namespace

std::vector<double> run_in_child(const std::function<std::vector<double>()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (pid == 0) {
    ::close(ends[0]);
    child(ends[1], work);
  }
  ::close(ends[1]);
  const std::string bytes = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (bytes.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("a simulation process died");
  if (bytes.front() == '-') throw std::runtime_error(bytes.substr(1));
  std::vector<double> answer((bytes.size() - 1) / sizeof(double));
  std::memcpy(answer.data(), bytes.data() + 1, answer.size() * sizeof(double));
  return answer;
}

}  // namespace rehearse::sim
