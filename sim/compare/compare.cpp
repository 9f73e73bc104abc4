#include "sim/compare/compare.hpp"

#include "sim/analytic/predict.hpp"
#include "sim/compare/reasons.hpp"
#include "sim/memory/allocator_peaks.hpp"

namespace rehearse::sim {

Comparison compare(const Job& job, const Progress& progress) {
  Comparison c;
  c.analytic = predict(job);
  c.critical = critical_path(job).result;
  Job alone = job;
  alone.system.gpu.contention.clear();
  c.analytic_alone_s = predict(alone).step_s;
  Simulation simulation = simulate(job, progress);
  c.simulated = std::move(simulation.result);
  c.timeline = std::move(simulation.timeline);
  add_allocator(job, {&c.analytic.memory, &c.simulated.memory});
  c.difference = c.simulated.step_s / c.analytic.step_s - 1;
  for (std::size_t i = 0; i < phase_count; ++i) {
    const auto phase = static_cast<Phase>(i);
    c.phases.push_back({phase, c.analytic.mean[phase], c.simulated.mean[phase], ""});
  }
  explain(job, c);
  return c;
}

}  // namespace rehearse::sim
