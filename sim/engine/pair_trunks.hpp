// What messages between the members of a group load of trunks.
#pragma once

#include <vector>

#include "sim/engine/call_loads.hpp"

namespace rehearse::sim {

// From each member to each other one, in the order of the members, whatever it carries.
[[nodiscard]] inline std::vector<Load> trunks_of_pairs(const std::vector<int>& members, const Wiring& wiring) {
  std::vector<Load> pairs;
  for (const int from : members) {
    for (const int to : members) {
      std::vector<Wire> wires;
      if (!wiring.same_domain(from, to)) wiring.trunks(from, to, wiring.rail_of(from), 0, wires);
      Load& pair = pairs.emplace_back();
      for (const Wire wire : wires) pair.wires.emplace_back(wire, 1);
    }
  }
  return pairs;
}

}  // namespace rehearse::sim
