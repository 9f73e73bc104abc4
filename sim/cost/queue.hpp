// Operators as the part of a pass that they are: the one copy of what the host's queue costs them.
#pragma once

#include "sim/cost/gpu.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// seconds_of_call: of a collective in the queue, alone. wait_s: more per kernel on the host.
template <class SecondsOfCall>
[[nodiscard]] double queued_seconds(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators,
                                    const workloads::PassQueue& queue, double wait_s, SecondsOfCall seconds_of_call) {
  double calls_s = 0;
  for (const workloads::Communication& call : queue.calls) calls_s += seconds_of_call(call);
  return queued_seconds(gpu, software, operators, queue.operators, calls_s, queue.issued_calls, wait_s);
}

// More of the host's time per kernel: in a pipeline that leaves the scale-up domain the stack's for each rank of tensor parallelism, and
// with ZeRO-3 that of its hooks.
[[nodiscard]] double more_issue_s(const Software& software, const topology::ClusterSpec& cluster, const workloads::Workload& workload);

}  // namespace rehearse::sim
