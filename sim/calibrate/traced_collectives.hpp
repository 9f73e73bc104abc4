// Collectives in traces, as what a network took for them.
#pragma once

#include <vector>

#include "sim/calibrate/kineto_trace.hpp"
#include "sim/calibrate/network_fit.hpp"

namespace rehearse::sim {

struct TracedCollectives {
  std::vector<MeasuredCollective> measured;
  int calls = 0;
  bool of_one_rank = false;  // some groups were seen by one of their ranks alone, whose kernels also wait for the others: upper bounds
};

// The kernel of a collective lasts from its rank's call to the end, so that the last rank to call shows what the network takes: of each
// call the shortest of the ranks that were traced, and of all calls of one size the median; of groups seen by one rank the shortest call.
// Left out: point to point, exchanges of uneven parts, groups whose ranks the trace does not list.
// Throws config::InputError for two traces of one rank.
[[nodiscard]] TracedCollectives traced_collectives(const std::vector<KinetoTrace>& traces);

}  // namespace rehearse::sim
