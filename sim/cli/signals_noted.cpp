#include "sim/cli/signals_noted.hpp"

#include <cstdlib>

namespace rehearse::cli {
namespace {

std::atomic<bool> signal_came = false;
std::atomic<int> last_signal = 0;

void note_signal(int signal) {
  last_signal = signal;
  signal_came = true;
}

void note(int signal, struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigaction(signal, &action, &before);
  if (before.sa_handler == SIG_IGN) sigaction(signal, &before, nullptr);
}

}  // namespace

SignalsNoted::SignalsNoted() {
  note(SIGINT, interrupt_);
  note(SIGTERM, terminate_);
}

SignalsNoted::~SignalsNoted() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

const std::atomic<bool>& asked_to_end() { return signal_came; }

void end_by_signal() {
  std::signal(last_signal, SIG_DFL);
  std::raise(last_signal);
  sigset_t held;  // files that were written hold it back until the end, which is here
  sigemptyset(&held);
  sigaddset(&held, last_signal);
  pthread_sigmask(SIG_UNBLOCK, &held, nullptr);
  std::abort();
}

}  // namespace rehearse::cli
