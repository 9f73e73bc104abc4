// An evaluator says to the last bit what predict() says, on random jobs, dense and with experts, whatever it was asked before.
#include <gtest/gtest.h>

#include "sim/analytic/evaluator.hpp"
#include "sim/analytic/predict.hpp"
#include "tests/engine/random_jobs.hpp"

namespace rehearse::tests {
namespace {

// As the job, with other sharding and other overlaps between replicas and stages.
workloads::Workload variant(workloads::Workload workload, int which) {
  workload.optimizer.zero_stage = (workload.optimizer.zero_stage + which) % 4;
  workload.overlap.dp_gradients = (which & 1) != 0;
  workload.overlap.dp_parameters = (which & 2) != 0 && workload.optimizer.zero_stage > 0;
  workload.overlap.pp = which != 3;
  return workload;
}

void expect_equal(sim::Evaluator& evaluator, const sim::Job& job, const std::string& text) {
  const sim::StepResult result = sim::predict(job);
  const sim::Evaluation evaluation = evaluator(job.workload);
  const sim::RankMemory& fullest = *result.memory.fullest();
  ASSERT_EQ(evaluation.step_s, result.step_s) << text;
  ASSERT_EQ(evaluation.mean.seconds, result.mean.seconds) << text;
  ASSERT_EQ(evaluation.peak_bytes, fullest.peak_bytes()) << text;
  ASSERT_EQ(evaluation.needed_bytes, fullest.needed_bytes()) << text;
  ASSERT_EQ(evaluation.fits, result.memory.fits()) << text;
}

TEST(Evaluator, SaysWhatPredictSaysOnTenThousandRandomJobs) {
  RandomJobs jobs(11);
  for (int i = 0; i < 2500; ++i) {
    const std::string text = jobs.next() + "}\n";
    const sim::Job job = job_of(text);
    sim::Evaluator evaluator(job);
    for (const int which : {0, 1, 2, 3}) {
      sim::Job other = job;
      other.workload = which == 0 ? job.workload : variant(job.workload, which);
      expect_equal(evaluator, other, text + " variant " + std::to_string(which));
    }
  }
}

}  // namespace
}  // namespace rehearse::tests
