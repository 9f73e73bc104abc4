// How long the kernels of each class ran.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/calibrate/kineto_trace.hpp"

namespace rehearse::sim {

struct ClassTime {
  KernelClass cls = KernelClass::unknown;
  int kernels = 0;
  double busy_us = 0;
};
// All classes that occur, longest first.
[[nodiscard]] std::vector<ClassTime> class_times(std::span<const KinetoTrace> traces);

struct UnknownKernel {
  std::string name;
  double share = 0;  // of the kernels' time
};
// Names of no class that take more than one percent of the time, longest first.
[[nodiscard]] std::vector<UnknownKernel> unknown_kernels(std::span<const KinetoTrace> traces);

}  // namespace rehearse::sim
