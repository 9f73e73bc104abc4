// What a kernel does, by its name.
#pragma once

#include <string_view>
#include <vector>

#include "sim/calibrate/kineto_trace.hpp"

namespace rehearse::sim {

enum class KernelClass { product, grouped_product, attention, memory_bound, communication, copy, unknown };
inline constexpr int kernel_classes = 7;
[[nodiscard]] std::string_view name_of(KernelClass cls);

[[nodiscard]] KernelClass class_of(std::string_view kernel_name);
[[nodiscard]] KernelClass class_of(const TraceKernel& kernel);

struct ClassTime {
  KernelClass cls = KernelClass::unknown;
  int kernels = 0;
  double busy_us = 0;
};
// All classes that occur, longest first.
[[nodiscard]] std::vector<ClassTime> class_times(const std::vector<KinetoTrace>& traces);

struct UnknownKernel {
  std::string name;
  double share = 0;  // of the kernels' time
};
// Names of no class that take more than one percent of the time, longest first.
[[nodiscard]] std::vector<UnknownKernel> unknown_kernels(const std::vector<KinetoTrace>& traces);

}  // namespace rehearse::sim
