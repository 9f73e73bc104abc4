// Colours of a refinement (folding.cpp): what behaves alike has the same.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "topology/flow_hash.hpp"

namespace rehearse::sim {

// Hashes of 64 bits: two of a million that ought to differ are equal with a probability of 1 in 10^7.
using Colour = std::uint64_t;
using Colours = std::vector<Colour>;

// In order.
inline Colour chain(Colour before, std::uint64_t next) { return topology::mix(before ^ topology::mix(next)); }
inline Colour chain(Colour before, double next) { return chain(before, std::bit_cast<std::uint64_t>(next)); }

}  // namespace rehearse::sim
