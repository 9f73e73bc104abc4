// What is compared of a trace with the job that was traced: times on the GPU, and what a system says of each.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/calibrate/compared_time.hpp"
#include "sim/calibrate/kineto_trace.hpp"
#include "sim/engine/prepared_step.hpp"

namespace rehearse::sim {

struct TracedComparison {
  std::vector<ComparedTime> times;  // as measured
  // In seconds, of the same, with this job's GPU and stack. Calls outlive neither the step nor the traces.
  std::function<std::vector<double>(const Job&)> predicted;
};

[[nodiscard]] bool named_as_operations(const PreparedStep& step, const std::vector<KinetoTrace>& traces);
// Mean time of every piece of work that was seen alone. Throws config::InputError where the job has another.
[[nodiscard]] TracedComparison compare_operations(const PreparedStep& step, const std::vector<KinetoTrace>& traces);
// By shapes, by position, and by classes.
[[nodiscard]] TracedComparison compare_kernels(const PreparedStep& step, const std::vector<KinetoTrace>& traces);

// The rank's computations in the order of its stream, those that take time. Throws config::InputError for a rank that is not simulated.
[[nodiscard]] std::vector<workloads::Op> computations(const PreparedStep& step, const KinetoTrace& trace);

}  // namespace rehearse::sim
