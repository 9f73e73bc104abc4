#include "sim/calibrate/class_times.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace rehearse::sim {

std::vector<ClassTime> class_times(std::span<const KinetoTrace> traces) {
  std::map<KernelClass, ClassTime> times;
  for (const KinetoTrace& trace : traces) {
    for (const TraceKernel& kernel : trace.kernels) {
      ClassTime& time = times[kernel.cls];
      ++time.kernels;
      time.busy_us += kernel.end_us - kernel.start_us;
    }
  }
  std::vector<ClassTime> out;
  for (auto& [cls, time] : times) out.push_back({cls, time.kernels, time.busy_us});
  std::ranges::stable_sort(out, std::greater{}, &ClassTime::busy_us);
  return out;
}

std::vector<UnknownKernel> unknown_kernels(std::span<const KinetoTrace> traces) {
  std::map<std::string, double> times;
  double all = 0;
  for (const KinetoTrace& trace : traces) {
    for (const TraceKernel& kernel : trace.kernels) {
      all += kernel.end_us - kernel.start_us;
      if (kernel.cls == KernelClass::unknown) times[kernel.name] += kernel.end_us - kernel.start_us;
    }
  }
  std::vector<UnknownKernel> out;
  for (const auto& [name, time] : times) {
    if (time > 0.01 * all) out.push_back({name, time / all});
  }
  std::ranges::stable_sort(out, std::greater{}, &UnknownKernel::share);
  return out;
}

}  // namespace rehearse::sim
