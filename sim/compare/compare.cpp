#include "sim/compare/compare.hpp"

#include <optional>

#include "sim/analytic/predict.hpp"
#include "sim/compare/reasons.hpp"
#include "sim/engine/prepared_step.hpp"

namespace rehearse::sim {

Comparison compare(const Job& job, const Progress& progress, AllocatorTrainings* trainings) {
  Comparison c;
  const workloads::Compiled compiled = compiled_for_simulation(job);
  // The formula's programs are cut into layers.
  std::optional<workloads::Compiled> into_layers;
  if (compiled.cut != workloads::Cut(workloads::Granularity::layer)) into_layers = workloads::compile(job.workload);
  const workloads::Compiled& plan = into_layers ? *into_layers : compiled;
  c.analytic = predict(job, plan);
  Job alone = job;
  alone.system.gpu.contention.clear();
  c.analytic_alone_s = predict(alone, plan, false).step_s;
  SimulationBesideLongestPath both = simulate_beside_longest_path(job, compiled, progress);
  c.critical = std::move(both.longest);
  c.simulated = std::move(both.simulated.result);
  c.timeline = std::move(both.simulated.timeline);
  std::optional<AllocatorTrainings> own;
  if (!trainings) trainings = &own.emplace(job, plan);
  for (StepResult* result : {&c.analytic, &c.simulated}) trainings->add_to(result->memory);
  c.difference = c.simulated.step_s / c.analytic.step_s - 1;
  for (std::size_t i = 0; i < phase_count; ++i) {
    const auto phase = static_cast<Phase>(i);
    c.phases.push_back({phase, c.analytic.mean[phase], c.simulated.mean[phase], ""});
  }
  explain(job, c);
  return c;
}

}  // namespace rehearse::sim
