// What must hold of every scenario that was accepted.
#pragma once

#include "sim/faults/scenario.hpp"

namespace rehearse::fuzz {

// Draws the first faults of a history. Throws Nonsense where they are not in order of time or their rates are no rates.
void draw(const sim::FaultScenario& scenario);

}  // namespace rehearse::fuzz
