// A simulated round as numbers, to come out of the process that simulated it.
#pragma once

#include <vector>

#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {

[[nodiscard]] std::vector<double> packed(const SimulatedRound& round);  // without its spans
[[nodiscard]] SimulatedRound unpacked(const std::vector<double>& numbers, std::size_t devices);

}  // namespace rehearse::federated
