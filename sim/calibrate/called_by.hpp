// Who launched a kernel, and when: the innermost operator of PyTorch that the launch lies in, on its thread of the host.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/calibrate/kineto_trace.hpp"

namespace rehearse::sim {

class Calls {
 public:
  using Thread = std::int64_t;

  void add_operator(Thread thread, double start_us, double duration_us, std::uint32_t index) {
    spans_.push_back({thread, start_us, start_us + duration_us, index});
  }
  void add_launch(Thread thread, double start_us, std::int64_t correlation) { launches_.push_back({thread, start_us, correlation}); }

  struct Caller {
    double launched_us = 0;
    std::uint32_t index = no_operator;
  };
  // By correlation.
  [[nodiscard]] std::unordered_map<std::int64_t, Caller> callers();

 private:
  struct Span {
    Thread thread = 0;
    double start_us = 0, end_us = 0;
    std::uint32_t index = 0;
  };
  struct Launch {
    Thread thread = 0;
    double start_us = 0;
    std::int64_t correlation = 0;
  };
  std::vector<Span> spans_;
  std::vector<Launch> launches_;
};

}  // namespace rehearse::sim
