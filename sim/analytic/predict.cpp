#include "sim/analytic/predict.hpp"

#include <optional>

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

  [[nodiscard]] PlanCost cost(const Job& job, int step) {
    std::optional<workloads::ExpertLayer> experts;
    if (job.workload.model.moe) experts.emplace(job.workload, step);
    return {job.system, job.workload, compiled, prices, experts ? &*experts : nullptr};
  }

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

}  // namespace

StepResult predict(const Job& job, const workloads::Compiled& compiled, bool stages_share) {
  Priced priced(job, compiled);
  Workspace workspace;
  std::vector<StepResult> steps;
  for (int step = 0; step < job.distinct_steps(); ++step) {
    const PlanCost plan = priced.cost(job, step);
    steps.push_back(result_of(
        job, compiled, step_terms(job.system, job.workload, compiled, compiled.sync, plan, priced.prices, workspace, true, stages_share)));
  }
  StepResult result = mean_step(job, std::move(steps));
  result.memory = predicted_memory(job, compiled);
  finish_for(job, result);
  return result;
}

StepResult predict(const Job& job) { return predict(job, workloads::compile(job.workload)); }

PassTimes predict_passes(const Job& job) {
  const workloads::Compiled compiled = workloads::compile(job.workload);
  const PlanCost plan = Priced(job, compiled).cost(job, 0);
  PassTimes passes;
  for (const std::uint32_t unit : plan.order) {
    passes.forward_s += plan.units[unit].forward.total();
    passes.backward_s += plan.units[unit].backward.total();
  }
  return passes;
}

}  // namespace rehearse::sim
