// When the host issues what one GPU runs, as the cost model has it: it runs ahead of the GPU, one operation after the other, in the order
// in which they start there. The simulation itself needs no such instants; tools that read traces do.
#pragma once

#include <span>
#include <vector>

namespace rehearse::sim {

struct HostLaunches {
  long long each_ns = 0;             // how long the host takes over one: shorter than asked for, where a step had no room for all
  std::vector<long long> starts_ns;  // [operation]
  // By how much every operation must be later than it is, to begin when it has been issued; then all are.
  long long lead_ns = 0;
};

// Operations of a step that lasts from from_ns to to_ns, by their start. They are issued within it, from its beginning on.
[[nodiscard]] HostLaunches host_launches(std::span<const long long> operation_starts_ns, long long each_ns, long long from_ns,
                                         long long to_ns);

}  // namespace rehearse::sim
