// The analytic model: equations (1)-(15) of MoFa, generalised to uneven stages (docs/analytic-model.md). No events, no SimGrid.
#pragma once

#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

[[nodiscard]] StepResult predict(const Job& job);

}  // namespace rehearse::sim
