// What a trace says of the host: how long launches take it, and how often the GPU waits for them.
#pragma once

#include <vector>

#include "sim/calibrate/kineto_trace.hpp"

namespace rehearse::sim {

struct HostTimes {
  int launches = 0;
  double launch_us = 0;   // median time of a launch in the host's calls, the profiler's own share included
  int gaps = 0;           // between kernels of one stream of which the later was launched before the earlier ended
  double gap_us = 0;      // their median: what the GPU itself takes from one kernel to the next
  double waited_us = 0;   // no kernel ran in the stream, and the next one was not launched yet
  double streams_us = 0;  // of which, from the first to the last kernel of these streams: the busiest of each GPU
};

// Without launches where the trace does not say which kernel they launched.
[[nodiscard]] HostTimes host_times(const std::vector<KinetoTrace>& traces);

// What a GPU did in a step: in this order, so that each moment counts once.
struct GpuTimes {
  double computing_us = 0, exchanging_us = 0, copying_us = 0, idle_us = 0;
};
// Mean of the marked steps, or of the whole trace, of each of its GPUs.
[[nodiscard]] GpuTimes gpu_times(const KinetoTrace& trace);

}  // namespace rehearse::sim
