// What a checkpoint weighs and how long it takes (docs/whole-jobs.md, "Checkpoints").
#pragma once

#include "sim/job/job.hpp"

namespace rehearse::sim {

struct CheckpointTimes {
  double bytes = 0;  // of the whole checkpoint
  Store store = Store::shared;
  double save_s = 0;      // training stands still (sync)
  double blocking_s = 0;  // training stands still (as the job does it)
  double background_s = 0;
  double load_s = 0;
  double backup_blocking_s = 0, backup_background_s = 0, backup_load_s = 0;
};

// Weights in their own precision, and what Adam keeps: master weights and two moments.
[[nodiscard]] double checkpoint_bytes(const Job& job);

// Throws config::InputError when a time neither is given nor follows from the cluster's storage.
[[nodiscard]] CheckpointTimes checkpoint_times(const Job& job);

}  // namespace rehearse::sim
