#include "sim/compare/compare.hpp"

#include <utility>

#include "sim/analytic/predict.hpp"
#include "sim/compare/reasons.hpp"
#include "sim/memory/predicted.hpp"

namespace rehearse::sim {

Comparison begin_comparison(const Job& job, const CompiledJob& compiled, AllocatorTrainings& trainings) {
  PredictionBesideAlone both = predict_beside_alone(job, *compiled.into_layers);
  Comparison c;
  c.needed_share = needed_share(both.predicted.memory);
  const double allocator_s = trainings.add_to(both.predicted);
  c.analytic = std::move(both.predicted);
  c.analytic_alone_s = both.alone_s + allocator_s;
  return c;
}

void finish_comparison(const Job& job, const CompiledJob& compiled, AllocatorTrainings& trainings, const Progress& progress,
                       Comparison& c) {
  SimulationBesideLongestPath both = simulate_beside_longest_path(job, *compiled.for_simulation, progress);
  c.critical = std::move(both.longest);
  c.simulated = std::move(both.simulated.result);
  c.timeline = std::move(both.simulated.timeline);
  for (StepResult* step : {&c.critical, &c.simulated}) trainings.add_to(*step);
  c.difference = c.simulated.step_s / c.analytic.step_s - 1;
  for (std::size_t i = 0; i < phase_count; ++i) {
    const auto phase = static_cast<Phase>(i);
    c.phases.push_back({phase, c.analytic.mean[phase], c.simulated.mean[phase], ""});
  }
  explain(job, c);
}

Comparison compare(const Job& job, const Progress& progress) {
  const CompiledJob compiled(job);
  AllocatorTrainings trainings(job, *compiled.into_layers);
  Comparison c = begin_comparison(job, compiled, trainings);
  finish_comparison(job, compiled, trainings, progress, c);
  return c;
}

}  // namespace rehearse::sim
