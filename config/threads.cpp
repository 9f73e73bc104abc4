#include "config/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace rehearse::config {
namespace {

// To a processor where the caller is not, if it may be on several; from there it may go on.
void move_away(std::jthread& thread) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;  // more processors than the set holds
  const int here = sched_getcpu();
  if (here < 0 || CPU_COUNT(&allowed) < 2) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<std::size_t>(here), &others);
  if (pthread_setaffinity_np(thread.native_handle(), sizeof others, &others) == 0) {
    pthread_setaffinity_np(thread.native_handle(), sizeof allowed, &allowed);
  }
}

}  // namespace

std::jthread beside(std::function<void()> work) {
  std::jthread thread(std::move(work));
  move_away(thread);
  return thread;
}

void on_threads(unsigned threads, const std::function<void()>& work) {
  std::exception_ptr error;
  std::mutex one_at_a_time;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(one_at_a_time);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < threads; ++i) others.push_back(beside(guarded));
    guarded();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace rehearse::config
