#include "sim/calibrate/alone.hpp"

#include <algorithm>
#include <map>

namespace rehearse::sim {

std::vector<bool> alone_on_gpu(const KinetoTrace& trace) {
  struct Others {
    std::vector<const TraceKernel*> kernels;  // by start
    std::size_t next = 0;
    double until_us = -1;  // last end of those that began before
  };
  std::map<int, Others> gpus;
  for (const TraceKernel& kernel : trace.kernels) {
    if (!computes(kernel)) gpus[kernel.device].kernels.push_back(&kernel);
  }
  std::vector<bool> alone;
  for (const TraceKernel& kernel : trace.kernels) {
    Others& others = gpus[kernel.device];
    for (; computes(kernel) && others.next < others.kernels.size() && others.kernels[others.next]->start_us < kernel.end_us; ++others.next)
      others.until_us = std::max(others.until_us, others.kernels[others.next]->end_us);
    alone.push_back(others.until_us <= kernel.start_us);
  }
  return alone;
}

}  // namespace rehearse::sim
