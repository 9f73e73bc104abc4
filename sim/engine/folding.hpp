// Which ranks behave alike on the described cluster, so that one of each class need be simulated.
#pragma once

#include "sim/cost/communication.hpp"
#include "sim/faults/step_faults.hpp"
#include "workloads/step_builder.hpp"

namespace rehearse::sim {

// The coarsest equitable partition of the ranks in which all ranks of a class have the same pipeline stage, pay the same for each of their
// groups and pipeline neighbours, suffer the same faults, and have group members and neighbours in the same classes.
[[nodiscard]] workloads::Folding fold(const workloads::Workload& workload, const CommunicationModel& model, const StepFaults& faults = {});

}  // namespace rehearse::sim
