// What a job says about its whole run: how long it trains, its checkpoints, its faults, how it recovers (docs/whole-jobs.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/faults/duration_law.hpp"
#include "sim/faults/scenario.hpp"

namespace rehearse::sim {

// One of the three is given; a job without any cannot be run as a whole.
struct TrainingLength {
  std::int64_t steps = 0;
  double tokens = 0;
  double time_s = 0;  // of the wall clock
  [[nodiscard]] bool given() const { return steps > 0 || tokens > 0 || time_s > 0; }
};

enum class Store { automatic, disk, shared, memory };

struct CheckpointInterval {
  std::int64_t steps = 0;  // 0: see time_s
  double time_s = 0;       // 0 too: the optimum
};

// A second, slower place for every so manieth checkpoint.
struct CheckpointBackup {
  std::int64_t interval_steps = 1;
  Store to = Store::shared;
  std::optional<double> save_s, load_s;
};

struct CheckpointSpec {
  CheckpointInterval interval;
  bool async = false;
  std::optional<double> size_bytes, save_s, load_s, stall_s;
  Store to = Store::automatic;
  double slowdown = 1;  // of steps during a background write
  int copies = 2;       // memory: nodes that hold each part
  std::optional<CheckpointBackup> backup;
};

struct RecoverySpec {
  std::string policy = "replace";
  // Per level: MoFa, section 3.4 (process, pod, job; means over the history of a cluster of thousands of GPUs).
  std::array<DurationLaw, level_count> time{DurationLaw(141), DurationLaw(262), DurationLaw(307)};
  DurationLaw detection{0};
  std::optional<int> spares;  // none given: as many as it takes
  DurationLaw repair{0};      // of a node that was replaced; then it is a spare
  bool shrink_when_empty = false;
  std::optional<DurationLaw> swap;  // hot spares, shrinking and growing: instead of starting pods
};

struct WholeJob {
  TrainingLength training;
  std::optional<double> init_s;  // of a job that starts for the first time; none: by its size (sim/wholejob/start_up.hpp)
  double step_s = 0;             // given; 0: worked out
  double data_s = 0;             // reading the training data again up to where training goes on
  CheckpointSpec checkpoint;
  RecoverySpec recovery;
  FaultScenario faults;
};

}  // namespace rehearse::sim
