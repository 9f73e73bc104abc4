// How much kernels slow down beside communication, and communication beside them, by a trace of their own.
#pragma once

#include <string>
#include <vector>

#include "sim/calibrate/kineto_trace.hpp"

namespace rehearse::sim {

// Of kernels of one class while a communication runs on another stream of the same GPU, against the same kernels alone: same name, launch,
// size of what a collective exchanges, and neighbours in their stream.
struct MeasuredContention {
  std::string with;                        // the communication: "tp", "cp", "ep", "pp", "dp", or "any"
  KernelClass cls = KernelClass::unknown;  // communication: what it suffers itself, which is beta
  double factor = 1;                       // median over kernels, weighted by their time, of the ratio of medians
  int alone = 0, beside = 0;               // kernels that say so
  double time_us = 0;                      // that those beside would take alone
};

// Kernels count as beside communication when it covers nine tenths of them, as alone when it covers less than a tenth.
[[nodiscard]] std::vector<MeasuredContention> contentions(const std::vector<KinetoTrace>& traces);

}  // namespace rehearse::sim
