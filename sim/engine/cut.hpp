// How a step may be cut into operations.
#pragma once

#include "sim/system.hpp"
#include "workloads/cut.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

// The simulation's granularity, and whether the order within a unit is unseen: nothing that slows computation runs beside a unit, and its
// collectives take the same time wherever they stand, since no other traffic can meet theirs. Under faults the members of a group fall
// behind one another between two collectives; then the order counts.
[[nodiscard]] workloads::Cut cut_of(const System& system, const workloads::Workload& workload, const workloads::ReplicaSync& sync,
                                    const workloads::Folding& folding);

}  // namespace rehearse::sim
