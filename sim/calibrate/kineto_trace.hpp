// A trace of PyTorch's profiler (Kineto), of one rank: what ran on the GPU.
#pragma once

#include <string>
#include <vector>

namespace rehearse::sim {

struct TraceKernel {
  std::string name;
  double start_us = 0, end_us = 0;  // from the first one on
  int device = 0, stream = 0;
  std::string launch;  // grid and block: the same kernel on the same shapes
  std::string group;   // "Process Group Description" of a collective; empty where the trace has none
  bool copy = false;   // gpu_memcpy, gpu_memset
};

struct KinetoTrace {
  std::string path, device;          // "NVIDIA H800"; empty where the trace does not say
  int rank = 0;                      // of distributedInfo
  std::vector<TraceKernel> kernels;  // by start
  std::vector<double> launch_us;     // host time of each kernel launch
  int steps = 0;                     // ProfilerStep marks
  double span_us = 0;                // from the first kernel's start to the last one's end
};

// `.json`, or packed as `.json.gz`; one pass, up to 4 GiB unpacked. Throws config::InputError for what is no trace, is cut off, or has no
// kernels.
[[nodiscard]] KinetoTrace read_kineto(const std::string& path);

}  // namespace rehearse::sim
