// Who works out how flows share links and when things end.
#pragma once

#include <cstdint>

namespace rehearse::sim {

// automatic: a heap of events, and max-min shares of what is connected to what has changed (sim/engine/fair_share.hpp).
// simgrid: SimGrid, one activity for everything: the reference, equal to 1e-9, many times slower.
enum class Solver : std::uint8_t { automatic, simgrid };

}  // namespace rehearse::sim
