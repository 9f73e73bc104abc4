#include "sim/analytic/predict.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "sim/analytic/finish.hpp"
#include "sim/analytic/step_formula.hpp"
#include "sim/communication_of.hpp"
#include "sim/memory/predicted.hpp"

namespace rehearse::sim {
namespace {

// A job's plan on its cluster.
struct Priced {
  Priced(const Job& job, const workloads::Compiled& plan)
      : compiled(plan), model(communication_of(job.system, job.workload)), prices(model, compiled.grid, compiled.shape.stages) {}

  const workloads::Compiled& compiled;
  CommunicationModel model;
  PriceBook prices;
  Workspace workspace;
};

StepResult result_of(const Job& job, const workloads::Compiled& compiled, const StepTerms& terms) {
  StepResult result;
  result.method = "analytic";
  result.step_s = terms.step_s;
  result.step_seconds = {terms.step_s};
  for (int s = 0; s < compiled.shape.stages; ++s)
    result.ranks.push_back({compiled.grid.rank({0, 0, 0, s}), s, job.system.gpus / compiled.shape.stages, terms.phases[s]});
  return result;
}

// Its times alone. `experts`: of a model that has them, else null.
StepResult times_of(const Job& job, Priced& priced, ExpertPrices* experts, bool stages_share) {
  const workloads::Compiled& compiled = priced.compiled;
  const PlanCost plan(job.system, job.workload, compiled, priced.prices, experts);
  return result_of(
      job, compiled,
      step_terms(job.system, job.workload, compiled, compiled.sync, plan, priced.prices, priced.workspace, true, stages_share));
}

template <class Each>
void each_step(const Job& job, Priced& priced, Each each) {
  for (int step = 0; step < job.distinct_steps(); ++step) {
    std::optional<ExpertPrices> experts;
    if (job.workload.model.moe) experts.emplace(job.system, job.workload, priced.prices, step);
    each(experts ? &*experts : nullptr);
  }
}

void add_all_but_times(const Job& job, const workloads::Compiled& compiled, StepResult& step) {
  step.memory = predicted_memory(job, compiled);
  finish_for(job, step);
}

}  // namespace

StepResult predict(const Job& job, const workloads::Compiled& compiled, bool stages_share) {
  Priced priced(job, compiled);
  std::vector<StepResult> steps;
  each_step(job, priced, [&](ExpertPrices* experts) { steps.push_back(times_of(job, priced, experts, stages_share)); });
  StepResult step = mean_step(job, std::move(steps));
  add_all_but_times(job, compiled, step);
  return step;
}

StepResult predict(const Job& job) { return predict(job, workloads::compile(job.workload)); }

PredictionBesideAlone predict_beside_alone(const Job& job, const workloads::Compiled& compiled) {
  Priced priced(job, compiled);
  Job alone = job;
  alone.system.gpu.contention.clear();  // which no call's price depends on
  std::vector<StepResult> steps, steps_alone;
  each_step(job, priced, [&](ExpertPrices* experts) {
    steps.push_back(times_of(job, priced, experts, true));
    steps_alone.push_back(times_of(alone, priced, experts, false));
  });
  PredictionBesideAlone both{.predicted = mean_step(job, std::move(steps))};
  add_all_but_times(job, compiled, both.predicted);
  both.alone_s = mean_step(alone, std::move(steps_alone)).step_s;
  return both;
}

PassTimes predict_passes(const Job& job, const workloads::Compiled& compiled) {
  Priced priced(job, compiled);
  const PlanCost plan(job.system, job.workload, compiled, priced.prices);
  PassTimes passes;
  for (const std::uint32_t unit : plan.order) {
    passes.forward_s += plan.units[unit].forward.total();
    passes.backward_s += plan.units[unit].backward.total();
  }
  return passes;
}

}  // namespace rehearse::sim
