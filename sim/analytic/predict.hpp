// The analytic model: equations (1)-(15) of MoFa, generalised to uneven stages (docs/analytic-model.md). No events, no SimGrid.
#pragma once

#include "sim/job/job.hpp"
#include "sim/result.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

// `compiled`: the job's, of granularity layer. stages_share: as in step_terms().
[[nodiscard]] StepResult predict(const Job& job, const workloads::Compiled& compiled, bool stages_share = true);
[[nodiscard]] StepResult predict(const Job& job);

// predict(), and at the same prices the time of the step with all contention coefficients at 1 and nothing left to others.
struct PredictionBesideAlone {
  StepResult predicted;
  double alone_s = 0;
};
[[nodiscard]] PredictionBesideAlone predict_beside_alone(const Job& job, const workloads::Compiled& compiled);

// One micro-batch through the whole model on its way forth and back (with what is recomputed), without the optimizer.
struct PassTimes {
  double forward_s = 0, backward_s = 0;
};
[[nodiscard]] PassTimes predict_passes(const Job& job, const workloads::Compiled& compiled);

}  // namespace rehearse::sim
