// Which kernels of a trace had their GPU to themselves.
#pragma once

#include <vector>

#include "sim/calibrate/kineto_trace.hpp"

namespace rehearse::sim {

// Communication and copies hold up what computes beside them.
[[nodiscard]] inline bool computes(const TraceKernel& kernel) {
  return kernel.cls != KernelClass::copy && kernel.cls != KernelClass::communication;
}

// Of each kernel, as they stand in the trace: whether no communication and no copy ran on its GPU meanwhile. Says nothing of those
// themselves.
[[nodiscard]] std::vector<bool> alone_on_gpu(const KinetoTrace& trace);

}  // namespace rehearse::sim
