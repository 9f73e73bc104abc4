// A trace of PyTorch's profiler (Kineto), of one rank: what ran on the GPU, and what the host called for it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/calibrate/kernel_class.hpp"

namespace rehearse::sim {

// A collective as ProcessGroupNCCL tells the profiler of it; without a name where the trace has none.
struct TracedCollective {
  std::string name;                          // "allreduce", "_allgather_base", ...
  std::string dtype;                         // "BFloat16"
  double in_elements = 0, out_elements = 0;  // of one rank
  int group_size = 0;
  std::vector<int> ranks;  // of the group, all of them; empty where the trace does not list them
};

inline constexpr std::uint32_t no_operator = std::numeric_limits<std::uint32_t>::max();

struct TraceKernel {
  std::string name;
  double start_us = 0, end_us = 0;  // from the first one on
  int device = 0, stream = 0;
  std::string launch;                      // grid and block: the same kernel on the same shapes
  std::string group;                       // "Process Group Description" of a collective; empty where the trace has none
  KernelClass cls = KernelClass::unknown;  // by its name; copies and fills of memory by their category
  std::uint32_t called_by = no_operator;   // index into operators: the innermost that launched it
  double launched_us = std::numeric_limits<double>::quiet_NaN();  // when the host called its launch; not a number where that is not traced
  TracedCollective collective = {};
};

// An operator of PyTorch with the shapes of what it was given (record_shapes). One entry for each call.
struct CalledOperator {
  std::string name;                                // "aten::addmm"
  std::vector<std::vector<std::int64_t>> dims;     // by argument; empty for what is no tensor
  std::vector<std::vector<std::int64_t>> strides;  // of the same, in elements; none in older traces
  std::vector<std::string> types;                  // "c10::BFloat16"
  std::vector<std::string> values;                 // of arguments that are no tensors, as the trace prints them; empty in older traces
};

struct KinetoTrace {
  std::string path, device;               // "NVIDIA H800"; empty where the trace does not say
  int rank = 0, world = 0;                // of distributedInfo; 0: not told
  std::vector<TraceKernel> kernels;       // by start
  std::vector<CalledOperator> operators;  // those that sim/calibrate/traced_operators.hpp can count
  std::vector<double> launch_us;          // host time of each kernel launch
  int steps = 0;                          // ProfilerStep marks
  double span_us = 0;                     // from the first kernel's start to the last one's end
};

// `.json`, or packed as `.json.gz`; one pass, up to 4 GiB unpacked. Throws config::InputError for what is no trace, is cut off, or has no
// kernels.
[[nodiscard]] KinetoTrace read_kineto(const std::string& path);

}  // namespace rehearse::sim
