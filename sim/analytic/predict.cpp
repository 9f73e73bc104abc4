#include "sim/analytic/predict.hpp"

#include <utility>

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

// Its times alone.
StepResult step_of(const Job& job, Priced& priced, Workspace& workspace, bool stages_share) {
  const workloads::Compiled& compiled = priced.compiled;
  std::vector<StepResult> steps;
  for (int step = 0; step < job.distinct_steps(); ++step) {
    const PlanCost plan(job.system, job.workload, compiled, priced.prices, step);
    steps.push_back(result_of(
        job, compiled, step_terms(job.system, job.workload, compiled, compiled.sync, plan, priced.prices, workspace, true, stages_share)));
  }
  return mean_step(job, std::move(steps));
}

void add_all_but_times(const Job& job, const workloads::Compiled& compiled, StepResult& step) {
  step.memory = predicted_memory(job, compiled);
  finish_for(job, step);
}

}  // namespace

StepResult predict(const Job& job, const workloads::Compiled& compiled, bool stages_share) {
  Priced priced(job, compiled);
  Workspace workspace;
  StepResult step = step_of(job, priced, workspace, stages_share);
  add_all_but_times(job, compiled, step);
  return step;
}

StepResult predict(const Job& job) { return predict(job, workloads::compile(job.workload)); }

PredictionBesideAlone predict_beside_alone(const Job& job, const workloads::Compiled& compiled) {
  Priced priced(job, compiled);
  Workspace workspace;
  PredictionBesideAlone both{.predicted = step_of(job, priced, workspace, true)};
  add_all_but_times(job, compiled, both.predicted);
  Job alone = job;
  alone.system.gpu.contention.clear();  // which no call's price depends on
  both.alone_s = step_of(alone, priced, workspace, false).step_s;
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
