// How PyTorch's profiler (Kineto) writes a NCCL kernel, so that tools made for its traces recognise the collectives of a simulated one.
// Source: torch/csrc/distributed/c10d/ParamCommsUtils.hpp and torch/csrc/profiler/util.cpp (saveNcclMeta); kernel names: NCCL 2.19 and
// later.
#pragma once

#include <string>

#include "sim/result.hpp"

namespace rehearse::sim {

// "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
[[nodiscard]] std::string nccl_kernel_name(const TimelineCollective& collective);

// The members "Collective name" to "Process Group Ranks" of the event's args: JSON without braces.
[[nodiscard]] std::string nccl_args(const TimelineCollective& collective);

}  // namespace rehearse::sim
