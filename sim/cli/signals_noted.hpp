// Long work that keeps what it has when it is asked to end: SIGINT and SIGTERM are noted, and end the program afterwards.
#pragma once

#include <atomic>
#include <csignal>

namespace rehearse::cli {

// While there is one, signals are noted instead of ending the program. A signal that is ignored (nohup) stays so.
class SignalsNoted {
 public:
  SignalsNoted();
  SignalsNoted(const SignalsNoted&) = delete;
  SignalsNoted& operator=(const SignalsNoted&) = delete;
  ~SignalsNoted();

 private:
  struct sigaction interrupt_ {};
  struct sigaction terminate_ {};
};

[[nodiscard]] const std::atomic<bool>& asked_to_end();

// Ends the program as the signal would have.
[[noreturn]] void end_by_signal();

}  // namespace rehearse::cli
