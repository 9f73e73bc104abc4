// Why the formula and the timeline part: which assumption of the formula broke, and by how much.
#pragma once

#include "sim/compare/compare.hpp"

namespace rehearse::sim {

// Fills the reasons of the phases and of the step. Differences below a thousandth of the step need none.
void explain(const Job& job, Comparison& comparison);

}  // namespace rehearse::sim
