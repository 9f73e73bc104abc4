#include "sim/api/prediction.hpp"

#include "sim/analytic/predict.hpp"
#include "sim/memory/allocator_peaks.hpp"
#include "sim/memory/predicted.hpp"
#include "sim/report/expected_band.hpp"
#include "sim/report/reporter.hpp"
#include "sim/report/training_cost.hpp"

namespace rehearse::sim {

Report prediction(const Job& job, double price_per_gpu_hour) {
  const TrainingCost cost = training_cost(job, price_per_gpu_hour);
  if (price_per_gpu_hour > 0 && !cost.known())
    throw config::InputError("--price: the job does not say how long it trains", "--set training.tokens=15e12");
  const workloads::Compiled compiled = workloads::compile(job.workload);
  AllocatorTrainings trainings(job, compiled);
  trainings.begin();
  const auto result = std::make_shared<StepResult>(predict(job, compiled));
  Report report(summary_of(job));
  report.own(expected_bands(job, needed_share(result->memory))).own(cost);
  trainings.add_to(*result);
  report.own(StepResults{{result.get()}}).add(std::shared_ptr<const StepResult>(result));
  return report;
}

}  // namespace rehearse::sim
