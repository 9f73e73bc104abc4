// What happened in one run, event by event.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/faults/fault.hpp"

namespace rehearse::sim {

struct HistoryEntry {
  Ns at = 0;
  std::string event;            // "failure", "training", ... (docs/output-formats.md)
  std::optional<Fault> fault;   // failure, not felt, slow
  std::int64_t steps = 0;       // done so far
  std::int64_t lost_steps = 0;  // failure: rolled back
  Ns duration = 0;              // of what begins: restarting, loading; 0 where it is open
  Ns step = 0;                  // step time from now on, where it changed
  std::string why;              // of what cannot be done
};

using History = std::vector<HistoryEntry>;

}  // namespace rehearse::sim
