#include "sim/report/host_launches.hpp"

#include <algorithm>

namespace rehearse::sim {

HostLaunches host_launches(std::span<const long long> operation_starts_ns, long long each_ns, long long from_ns, long long to_ns) {
  HostLaunches launches;
  if (operation_starts_ns.empty()) return launches;
  launches.each_ns = std::min(each_ns, (to_ns - from_ns) / static_cast<long long>(operation_starts_ns.size()));
  long long at_ns = from_ns;
  for (const long long start_ns : operation_starts_ns) {
    launches.starts_ns.push_back(at_ns);
    at_ns += launches.each_ns;
    launches.lead_ns = std::max(launches.lead_ns, at_ns - start_ns);
  }
  return launches;
}

}  // namespace rehearse::sim
