#pragma once

#include <sys/resource.h>

#include <chrono>
#include <functional>

namespace rehearse {

inline double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double processor_seconds_so_far() {
  double sum = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  }
  return sum;
}

// Of this process and of its children that end meanwhile: other work beside them does not count.
inline double processor_seconds_of(const std::function<void()>& work) {
  const double begin = processor_seconds_so_far();
  work();
  return processor_seconds_so_far() - begin;
}

}  // namespace rehearse
