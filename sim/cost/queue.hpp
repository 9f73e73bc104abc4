// Operators as the part of a pass that they are: the one copy of what the host's queue costs them.
#pragma once

#include "sim/cost/gpu.hpp"
#include "topology/cluster.hpp"
#include "workloads/plan.hpp"

namespace rehearse::sim {

// An operator in a queue: the GPU's time alone.
[[nodiscard]] double device_seconds(const Gpu& gpu, const Software& software, const workloads::Operator& op);

// Of a pair on the GPU: neither slows the other down.
[[nodiscard]] double seconds_of(const workloads::PassQueue::Pair& pair, double product_s, double collective_s);

// What the host issues of pairs: kernels and calls.
[[nodiscard]] int issued_of(std::span<const workloads::PassQueue::Pair> pairs);

// seconds_of_call: of a collective in the queue, alone: of its calls in turn, then of its pairs. wait_s: more per kernel on the host.
template <class SecondsOfCall>
[[nodiscard]] double queued_seconds(const Gpu& gpu, const Software& software, std::span<const workloads::Operator> operators,
                                    const workloads::PassQueue& queue, double wait_s, SecondsOfCall seconds_of_call) {
  double others_s = 0;
  for (const workloads::Communication& call : queue.calls) others_s += seconds_of_call(call);
  for (const workloads::PassQueue::Pair& pair : queue.pairs)
    others_s += seconds_of(pair, device_seconds(gpu, software, pair.product), seconds_of_call(pair.collective));
  return queued_seconds(gpu, software, operators, queue.operators, others_s, queue.issued_calls + issued_of(queue.pairs), wait_s);
}

// More of the host's time per kernel: in a pipeline that leaves the scale-up domain the stack's for each rank of tensor parallelism, and
// with ZeRO-3 that of its hooks.
[[nodiscard]] double more_issue_s(const Gpu& gpu, const Software& software, const topology::ClusterSpec& cluster,
                                  const workloads::Workload& workload);

}  // namespace rehearse::sim
