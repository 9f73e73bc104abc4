#include "sim/engine/child_process.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
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

[[noreturn]] void answer_and_exit(int fd, const Work& work) {
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

// A running child; ended with it, when its answer was not waited for.
class Child {
 public:
  explicit Child(const Work& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    pid_ = ::fork();
    if (pid_ < 0) {
      const std::string why = std::strerror(errno);
      ::close(ends[0]);
      ::close(ends[1]);
      throw std::runtime_error("cannot fork: " + why);
    }
    if (pid_ == 0) {
      ::close(ends[0]);
      answer_and_exit(ends[1], work);
    }
    ::close(ends[1]);
    fd_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::close(fd_);
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    static_cast<void>(reap());
  }

  [[nodiscard]] int fd() const { return fd_; }

  // Takes what has come, waiting for the first of it; false at the end.
  [[nodiscard]] bool read_some() {
    char buffer[65536];
    for (;;) {
      const ssize_t n = ::read(fd_, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes_.append(buffer, static_cast<std::size_t>(n));
      return true;
    }
  }

  // After the end.
  [[nodiscard]] std::vector<double> answer() {
    const int status = reap();
    if (bytes_.empty() || !WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("a simulation process died");
    if (bytes_.front() == '-') throw std::runtime_error(bytes_.substr(1));
    std::vector<double> numbers((bytes_.size() - 1) / sizeof(double));
    std::memcpy(numbers.data(), bytes_.data() + 1, numbers.size() * sizeof(double));
    return numbers;
  }

 private:
  [[nodiscard]] int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  pid_t pid_ = 0;
  int fd_ = -1;
  std::string bytes_;
};

}  // namespace

std::vector<double> run_in_child(const Work& work) {
  Child child(work);
  while (child.read_some()) {
  }
  return child.answer();
}

void run_in_children(std::size_t count, int processes, const std::function<Work(std::size_t)>& work_of,
                     const std::function<void(std::size_t, std::vector<double>)>& done) {
  struct Running {
    Running(std::size_t i, const Work& work) : index(i), child(work) {}
    std::size_t index;
    Child child;
  };
  std::list<Running> running;
  std::size_t next = 0;
  while (next < count || !running.empty()) {
    while (next < count && running.size() < static_cast<std::size_t>(processes)) {
      const Work work = work_of(next);
      running.emplace_back(next++, work);
    }
    std::vector<pollfd> ready;
    for (const Running& one : running) ready.push_back({one.child.fd(), POLLIN, 0});
    if (::poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(std::string("cannot wait for a simulation process: ") + std::strerror(errno));
    }
    auto one = running.begin();
    for (const pollfd& fd : ready) {
      const auto it = one++;
      if (fd.revents == 0 || it->child.read_some()) continue;
      done(it->index, it->child.answer());
      running.erase(it);
    }
  }
}

}  // namespace rehearse::sim
