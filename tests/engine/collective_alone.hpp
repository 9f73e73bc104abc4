// One collective on an otherwise idle cluster.
#pragma once

#include "sim/job/job.hpp"
#include "workloads/collective.hpp"

namespace rehearse::tests {

// All GPUs are replicas, and all are simulated.
[[nodiscard]] sim::Job job_of_one_group(int gpus);

// Of the first n ranks, executed, and by the job's price.
[[nodiscard]] double alone_s(const sim::Job& job, workloads::CollectiveKind kind, int n, double bytes);
[[nodiscard]] double closed_form_s(const sim::Job& job, workloads::CollectiveKind kind, int n, double bytes);

}  // namespace rehearse::tests
