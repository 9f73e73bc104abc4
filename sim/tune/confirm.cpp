// The best plans simulated, and the reason where that changes their order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/compare/compare.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/tune/report.hpp"

namespace rehearse::sim {
namespace {

Job job_of(const Space& space, const TunedPlan& plan) { return tuned(space.job_of(plan.candidate.point, plan.candidate.dp)); }

// Why the timeline of a plan is longer or shorter than its formula: the phase that differs most. Its text comes from a child as numbers.
std::string reason_of(const Job& job) {
  const std::vector<double> letters = run_in_child([&] {
    const Comparison comparison = compare(job);
    const auto most = std::ranges::max_element(comparison.phases, {},
                                               [](const PhaseDifference& phase) { return std::abs(phase.simulated_s - phase.analytic_s); });
    std::string text = comparison.reasons.empty() ? "" : comparison.reasons.front();
    if (text.empty() && most != comparison.phases.end()) text = fmt::format("{}: {}", name_of(most->phase), most->reason);
    return std::vector<double>(text.begin(), text.end());
  });
  return {letters.begin(), letters.end()};
}

std::string change_of(const Space& space, const TunedPlan& plan) {
  const double difference = *plan.simulated_s / plan.predicted->step_s - 1;
  return fmt::format("{}: simulated {:+.1f} % ({})", plan.text, 100 * difference, reason_of(job_of(space, plan)));
}

}  // namespace

void confirm(const Space& space, TuneReport& report, int count, int processes, const std::function<void(double)>& progress) {
  const std::size_t plans = std::min(report.best.size(), static_cast<std::size_t>(count));
  std::size_t ended = 0;
  const auto work_of = [&](std::size_t i) -> Work {
    return [&space, plan = &report.best[i]] { return std::vector<double>{simulate(job_of(space, *plan), {}, false).result.step_s}; };
  };
  run_in_children(plans, processes, work_of, [&](std::size_t i, std::vector<double> answer) {
    report.best[i].simulated_s = answer.at(0);
    progress(static_cast<double>(++ended) / static_cast<double>(plans));
  });
  if (plans < 2) return;
  const auto best = std::ranges::min_element(report.best.begin(), report.best.begin() + static_cast<std::ptrdiff_t>(plans), {},
                                             [](const TunedPlan& plan) { return *plan.simulated_s; });
  const TunedPlan& first = report.best.front();
  if (*first.simulated_s <= *best->simulated_s * (1 + report.within)) return;
  report.order_changes = {change_of(space, first), change_of(space, *best)};
}

}  // namespace rehearse::sim
