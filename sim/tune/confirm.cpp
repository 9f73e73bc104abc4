// The best plans simulated, and the reason where that changes their order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/input_error.hpp"
#include "sim/compare/compare.hpp"
#include "sim/engine/child_process.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/tune_chunks.hpp"
#include "sim/report/memory_table.hpp"
#include "sim/tune/report.hpp"

namespace rehearse::sim {
namespace {

Job job_of(const Space& space, const TunedPlan& plan) { return tuned(space.job_of(plan.candidate.point, plan.candidate.dp)); }

// Children answer with numbers: these are texts among them.
std::vector<double> letters_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(std::vector<double>::const_iterator first, std::vector<double>::const_iterator end) {
  std::string text;
  std::transform(first, end, std::back_inserter(text), [](double letter) { return static_cast<char>(letter); });
  return text;
}

Confirmation refused(const std::string& why) {
  Confirmation confirmed;
  confirmed.refused = why;
  return confirmed;
}

// As `simulate` answers: the step, its peak, and what the allocator says of it.
Confirmation simulated(const Job& job) {
  Simulation simulation = simulate(job, {}, false);
  if (simulation.aftermath)
    return refused(fmt::format("'{}': the step does not come to its end", job.system.simulation.faults.failures.front().text));
  Confirmation confirmed;
  simulation.result = with_allocator(job, std::move(simulation.result));
  confirmed.step_s = simulation.result.step_s;
  confirmed.peak_bytes = simulation.result.memory.fullest()->peak_bytes();
  confirmed.needed_bytes = simulation.result.memory.fullest()->needed_bytes();
  confirmed.shortage = shortage(simulation.result);
  return confirmed;
}

enum class Said : std::uint8_t { nothing, refused, shortage };

std::vector<double> numbers_of(const Confirmation& confirmed) {
  const Said said = !confirmed.refused.empty() ? Said::refused : !confirmed.shortage.empty() ? Said::shortage : Said::nothing;
  std::vector<double> numbers{confirmed.step_s, confirmed.peak_bytes, confirmed.needed_bytes, static_cast<double>(said)};
  const std::vector<double> letters = letters_of(said == Said::refused ? confirmed.refused : confirmed.shortage);
  numbers.insert(numbers.end(), letters.begin(), letters.end());
  return numbers;
}

Confirmation confirmation_of(const std::vector<double>& numbers) {
  Confirmation confirmed;
  confirmed.step_s = numbers.at(0);
  confirmed.peak_bytes = numbers.at(1);
  confirmed.needed_bytes = numbers.at(2);
  const auto said = static_cast<Said>(numbers.at(3));
  const std::string text = text_of(numbers.begin() + 4, numbers.end());
  if (said == Said::refused) confirmed.refused = text;
  if (said == Said::shortage) confirmed.shortage = text;
  return confirmed;
}

Confirmation simulated_or_refused(const Job& job) {
  try {
    return simulated(job);
  } catch (const config::InputError& error) {
    return refused(error.message());
  }
}

// In a process of its own once more, so that its death (by want of memory) is an answer like any other and the search is not lost.
std::vector<double> guarded(const Job& job) {
  try {
    return run_in_child([&] { return numbers_of(simulated_or_refused(job)); });
  } catch (const std::exception& error) {
    return numbers_of(refused(error.what()));
  }
}

// Why the timeline of a plan is longer or shorter than its formula: the phase that differs most.
std::string reason_of(const Job& job) {
  try {
    const std::vector<double> letters = run_in_child([&] {
      const Comparison comparison = compare(job);
      if (comparison.simulated.mean[Phase::allocator] > 0)
        return letters_of("its memory is so full that the allocator gives blocks back in every step, whose time the search has not");
      const auto most = std::ranges::max_element(
          comparison.phases, {}, [](const PhaseDifference& phase) { return std::abs(phase.simulated_s - phase.analytic_s); });
      std::string text = comparison.reasons.empty() ? "" : comparison.reasons.front();
      if (text.empty() && most != comparison.phases.end()) text = fmt::format("{}: {}", name_of(most->phase), most->reason);
      return letters_of(text);
    });
    return text_of(letters.begin(), letters.end());
  } catch (const std::exception& error) {
    return fmt::format("no reason is known: {}", error.what());
  }
}

std::string change_of(const Space& space, const TunedPlan& plan) {
  const Confirmation& confirmed = *plan.confirmed;
  if (!confirmed.refused.empty()) return fmt::format("{}: the simulation refuses it", plan.text);
  if (!confirmed.shortage.empty()) return fmt::format("{}: {}", plan.text, confirmed.shortage);
  const double difference = confirmed.step_s / plan.predicted->step_s - 1;
  return fmt::format("{}: simulated {:+.1f} % ({})", plan.text, 100 * difference, reason_of(job_of(space, plan)));
}

// The plans that the simulation has an answer to and that fit there, fastest first.
std::vector<TunedPlan*> by_simulation(TuneReport& report) {
  std::vector<TunedPlan*> plans;
  for (TunedPlan& plan : report.best) {
    if (plan.confirmed && plan.confirmed->good()) plans.push_back(&plan);
  }
  std::ranges::stable_sort(plans, {}, [](const TunedPlan* plan) { return plan->confirmed->step_s; });
  return plans;
}

}  // namespace

void confirm(const Space& space, TuneReport& report, int count, int processes, const std::function<void(double)>& progress) {
  const std::size_t plans = std::min(report.best.size(), static_cast<std::size_t>(count));
  std::size_t ended = 0;
  const auto work_of = [&](std::size_t i) -> Work { return [&space, plan = &report.best[i]] { return guarded(job_of(space, *plan)); }; };
  run_in_children(plans, processes, work_of, [&](std::size_t i, const std::vector<double>& answer) {
    report.best[i].confirmed = confirmation_of(answer);
    progress(static_cast<double>(++ended) / static_cast<double>(plans));
  });
  const std::vector<TunedPlan*> fastest = by_simulation(report);
  for (std::size_t i = 0; i < fastest.size(); ++i) fastest[i]->confirmed->rank = static_cast<int>(i) + 1;
  if (fastest.empty()) return;
  const TunedPlan &first = report.best.front(), &best = *fastest.front();
  if (first.confirmed->good() && first.confirmed->step_s <= best.confirmed->step_s * (1 + report.within)) return;
  report.order_changes = {change_of(space, first), change_of(space, best)};
}

}  // namespace rehearse::sim
