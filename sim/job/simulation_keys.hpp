// The job's `simulation` section: how the timeline is made, not what is modelled.
#pragma once

#include "config/keys.hpp"
#include "sim/job/job.hpp"

namespace rehearse::sim {

// All but `faults`, which are read by read_step_faults(): they name parts of a system that must be known by then.
[[nodiscard]] const config::Keys<SimulationOptions>& simulation_keys();

// simulation.faults. Needs job.system and job.whole.
void read_step_faults(const config::Node& node, Job& job);

}  // namespace rehearse::sim
