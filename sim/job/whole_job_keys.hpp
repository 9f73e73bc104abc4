// The keys of a job that describe its whole run, not a step (docs/whole-jobs.md).
#pragma once

#include "config/keys.hpp"
#include "sim/job/whole_job.hpp"

namespace rehearse::sim {

[[nodiscard]] const config::Keys<WholeJob>& training_keys();
[[nodiscard]] const config::Keys<CheckpointSpec>& checkpoint_keys();
[[nodiscard]] const config::Keys<RecoverySpec>& recovery_keys();

// Policies that leave nodes out have no spares unless the job says how many.
void settle_recovery(RecoverySpec& spec);

// What the keys of a section say together, and to the number of nodes.
void check_training(const config::Node& training);
void check_checkpoint(const config::Node& checkpoint, const CheckpointSpec& spec, int nodes);
void check_recovery(const config::Node& job, const RecoverySpec& spec);

}  // namespace rehearse::sim
