#include "sim/calibrate/trace_host.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/calibrate/alone.hpp"
#include "sim/calibrate/median.hpp"

namespace rehearse::sim {
namespace {

// The stream with most kernels that compute, of each GPU.
std::map<int, int> busiest_streams(const KinetoTrace& trace) {
  std::map<std::pair<int, int>, int> kernels;
  for (const TraceKernel& kernel : trace.kernels) {
    if (computes(kernel)) ++kernels[{kernel.device, kernel.stream}];
  }
  std::map<int, int> busiest;
  std::map<int, int> most;
  for (const auto& [stream, count] : kernels) {
    if (count <= most[stream.first]) continue;
    most[stream.first] = count;
    busiest[stream.first] = stream.second;
  }
  return busiest;
}

enum class Doing : std::uint8_t { computing, exchanging, copying };

Doing doing(const TraceKernel& kernel) {
  if (kernel.cls == KernelClass::copy) return Doing::copying;
  return kernel.cls == KernelClass::communication ? Doing::exchanging : Doing::computing;
}

// Begin and end of what runs, in time.
struct Change {
  double at_us = 0;
  Doing what = Doing::computing;
  int by = 1;
};

}  // namespace

HostTimes host_times(const std::vector<KinetoTrace>& traces) {
  HostTimes out;
  std::vector<double> launches, gaps;
  for (const KinetoTrace& trace : traces) {
    launches.insert(launches.end(), trace.launch_us.begin(), trace.launch_us.end());
    for (const auto& [device, stream] : busiest_streams(trace)) {
      const TraceKernel *first = nullptr, *last = nullptr;
      for (const TraceKernel& kernel : trace.kernels) {
        if (kernel.device != device || kernel.stream != stream) continue;
        if (last != nullptr && !std::isnan(kernel.launched_us)) {
          const double gap = kernel.start_us - last->end_us;
          if (kernel.launched_us < last->end_us) {
            gaps.push_back(std::max(0.0, gap));
          } else {
            out.waited_us += std::max(0.0, kernel.launched_us - last->end_us);
          }
        }
        if (first == nullptr) first = &kernel;
        if (last == nullptr || kernel.end_us > last->end_us) last = &kernel;
      }
      out.streams_us += last->end_us - first->start_us;
    }
  }
  out.launches = static_cast<int>(launches.size());
  out.gaps = static_cast<int>(gaps.size());
  out.launch_us = median(std::move(launches));
  out.gap_us = median(std::move(gaps));
  return out;
}

GpuTimes gpu_times(const KinetoTrace& trace) {
  std::map<int, std::vector<Change>> gpus;
  for (const TraceKernel& kernel : trace.kernels) {
    gpus[kernel.device].push_back({kernel.start_us, doing(kernel), 1});
    gpus[kernel.device].push_back({kernel.end_us, doing(kernel), -1});
  }
  GpuTimes out;
  const double share = 1.0 / (std::max(1, trace.steps) * static_cast<double>(gpus.size()));
  for (auto& [device, changes] : gpus) {
    std::ranges::sort(changes, {}, &Change::at_us);
    std::array<int, 3> running{};
    double before_us = 0;
    for (const Change& change : changes) {
      const double lasted = share * (change.at_us - before_us);
      if (running[0] > 0) {
        out.computing_us += lasted;
      } else if (running[1] > 0) {
        out.exchanging_us += lasted;
      } else {
        (running[2] > 0 ? out.copying_us : out.idle_us) += lasted;
      }
      running[static_cast<std::size_t>(change.what)] += change.by;
      before_us = change.at_us;
    }
    out.idle_us += share * (trace.span_us - before_us);
  }
  return out;
}

}  // namespace rehearse::sim
