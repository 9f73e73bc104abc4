// Communications of a workload on a system, priced as its simulation runs them.
#pragma once

#include "sim/cost/communication.hpp"
#include "sim/system.hpp"

namespace rehearse::sim {

// cluster: the system's, or what faults leave of it.
[[nodiscard]] inline CommunicationModel communication_of(const System& system, const workloads::Workload& workload,
                                                         const topology::ClusterSpec& cluster) {
  return {cluster,
          workload,
          system.simulation.algorithm,
          system.software.collectives,
          system.simulation.collectives == Fidelity::step,
          system.simulation.protocol};
}
[[nodiscard]] inline CommunicationModel communication_of(const System& system, const workloads::Workload& workload) {
  return communication_of(system, workload, system.cluster);
}

}  // namespace rehearse::sim
