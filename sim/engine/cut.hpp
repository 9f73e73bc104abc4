// How the step of a job may be cut into operations.
#pragma once

#include "sim/job/job.hpp"
#include "workloads/cut.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

// The job's granularity, and whether the order within a unit is unseen: nothing that slows computation runs beside a unit, and its
// collectives take the same time wherever they stand, since no other traffic can meet theirs. Under faults the members of a group fall
// behind one another between two collectives; then the order counts.
[[nodiscard]] workloads::Cut cut_of(const Job& job, const workloads::ReplicaSync& sync, const workloads::Folding& folding);

}  // namespace rehearse::sim
