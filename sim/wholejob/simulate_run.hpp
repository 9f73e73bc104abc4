// Whole jobs on SimGrid.
#pragma once

#include <functional>
#include <vector>

#include "sim/wholejob/history.hpp"
#include "sim/wholejob/plan.hpp"
#include "sim/wholejob/run_result.hpp"

namespace rehearse::sim {

// With simulated steps: states of the cluster that are not well, how many the runs met, and how many steps had to be simulated for them.
struct StateCounts {
  std::size_t met = 0, worked_out = 0;
};

// One run. SimGrid allows one simulation per process: a second call in the same process throws std::logic_error. `history` and
// `states` may be null.
[[nodiscard]] RunResult simulate_run(const WholeJobPlan& plan, std::uint64_t seed, History* history = nullptr,
                                     StateCounts* states = nullptr);

// What happens in that run, without SimGrid's clock.
[[nodiscard]] History history_of(const WholeJobPlan& plan, std::uint64_t seed);

// `runs` runs with seeds first_seed, first_seed + 1, ..., each in a process of its own, `processes` at a time. The result does not depend
// on that number. `progress`, with the share done, may be empty.
[[nodiscard]] std::vector<RunResult> simulate_runs(const WholeJobPlan& plan, std::uint64_t first_seed, int runs, int processes,
                                                   const std::function<void(double)>& progress = {}, StateCounts* states = nullptr);

// Those of them for which `mine` holds: `done(i, result)` as they end, in no order. Steps of states are worked out for the others too, so
// that a part has the same ones as the whole.
void simulate_some_runs(const WholeJobPlan& plan, std::uint64_t first_seed, int runs, int processes,
                        const std::function<bool(std::size_t)>& mine, const std::function<void(std::size_t, const RunResult&)>& done,
                        StateCounts* states = nullptr);

}  // namespace rehearse::sim
