// Reading what goes wrong while a deployment serves: `simulation.faults` of a serving job, and --fault.
#pragma once

#include "config/node.hpp"
#include "sim/serving/serving_job.hpp"

namespace rehearse::sim {

// "instance decode.2 at 120 s for 90 s", "gpu 17 at 60 s", "node 1 at 60 s for 5 min", "gpu 3 slow 1.5 from 10 s for 60 s", "nic 3 slow 4",
// "nic 3 down from 10 s for 5 s", "nic 3 at 10 s", "rail 0 slow 2", "link leaf0 spine1 at 60 s for 5 min", "spine lost". Throws
// config::InputError where it is not that, or names what the deployment does not have.
[[nodiscard]] ServiceFault read_service_fault(const config::Node& item, const ServingJob& job);

}  // namespace rehearse::sim
