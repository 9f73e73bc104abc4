// When each operation of a step graph ran, whoever executed it, and what that says about each rank's time.
#pragma once

#include <limits>
#include <vector>

#include "sim/result.hpp"
#include "workloads/step_graph.hpp"

namespace rehearse::sim {

inline constexpr double never_s = std::numeric_limits<double>::infinity();

// Times in seconds since the start of the step; never_s for what did not happen, in a step in which something failed.
struct Execution {
  std::vector<double> arrive_s;  // [op] all dependencies met; it starts then, but where it waits for other members of a collective
  std::vector<double> end_s;     // [op]
  std::vector<double> begin_s;   // [joint] the collective starts for all its members; empty: each starts by itself
  double step_s = 0;

  // `op`: as graph.op(id) says it.
  [[nodiscard]] double start_s(workloads::OpId id, const workloads::Op& op) const {
    return op.kind == workloads::OpKind::collective && !begin_s.empty() ? begin_s[op.joint] : arrive_s[id];
  }
  [[nodiscard]] double start_s(const workloads::StepGraph& graph, workloads::OpId id) const {
    const bool alone = graph.in_program(graph.block_of(id), id).kind != workloads::OpKind::collective;
    return alone ? arrive_s[id] : start_s(id, graph.op(id));
  }
};

// When each simulated rank's step begins (0, or with a staggered graph when it must, to compute its first micro-batch when it did), and how
// long the step is: until the last operation of all, or staggered, the longest rank from its own beginning to its own last operation.
[[nodiscard]] std::vector<double> step_origins(const workloads::StepGraph& graph, const Execution& execution);
[[nodiscard]] double step_length(const workloads::StepGraph& graph, const Execution& execution);

// Phases of every simulated rank; each adds up to step_s. Idle time of the compute stream is attributed by walking back along what released
// the next operation: own collectives to their class, messages between stages to exposed pp, other stages' work to the bubble, and waiting
// for a late member of an own collective to waiting.
[[nodiscard]] std::vector<PhaseTimes> account(const workloads::StepGraph& graph, const Execution& execution);

}  // namespace rehearse::sim
