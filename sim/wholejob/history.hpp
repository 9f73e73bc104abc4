// What happened in one run, event by event.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/faults/fault.hpp"
#include "sim/wholejob/cluster_state.hpp"

namespace rehearse::sim {

// The step under way when something fails.
struct StepUnderWay {
  ClusterState state;
  std::set<int> out;      // nodes that are left out
  double done = 0;        // share of the step
  Ns spent = 0, all = 0;  // time spent on it, and that a whole step takes at the time
};

struct HistoryEntry {
  Ns at = 0;
  std::string event;                                // "failure", "training", ... (docs/output-formats.md)
  std::optional<Fault> fault;                       // failure, not felt, slow
  std::int64_t steps = 0;                           // done so far
  std::int64_t lost_steps = 0;                      // failure: rolled back
  Ns duration = 0;                                  // of what begins: restarting, loading; 0 where it is open
  Ns step = 0;                                      // step time from now on, where it changed
  std::string why;                                  // of what cannot be done
  std::optional<StepUnderWay> step_under_way = {};  // failure: unless training stood still
};

using History = std::vector<HistoryEntry>;

}  // namespace rehearse::sim
