// Work on several threads.
#pragma once

#include <functional>
#include <thread>

namespace rehearse::config {

// A thread that does the work on another processor than the caller's. Linux may leave a new thread on the processor of the one that made
// it, behind it for a time slice, while another is idle (6.18 on two processors: 2 ms, as much as short work takes in all).
[[nodiscard]] std::jthread beside(std::function<void()> work);

// The work on so many threads at once, of which the caller is one. The first exception is thrown on when all have ended.
void on_threads(unsigned threads, const std::function<void()>& work);

}  // namespace rehearse::config
