// An evaluator says to the last bit what predict() says, on random jobs, dense and with experts, whatever it was asked before.
#include <gtest/gtest.h>

#include <random>

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
  const sim::Evaluation brief = evaluator.without_phases(job.workload);
  ASSERT_EQ(brief.step_s, result.step_s) << text;
  ASSERT_EQ(brief.needed_bytes, result.memory.fullest()->needed_bytes()) << text;
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

// Stacks whose operators, host or units know how the optimizer is sharded: FSDP2's copies, hooks of ZeRO-3, autocast, gradients that are
// adopted, adapters that are gathered in fewer bits than they are kept in; or whether gradients are reduced behind backward: buckets that
// the host checks.
TEST(Evaluator, TellsShardingApartWhereUnitsDependOnIt) {
  for (const std::string stack :
       {"software: torchtitan", "software: pytorch", "software: transformers", "software: torch-fsdp", "software: megatron-bridge",
        "software: {like: peft-fsdp, adapter_units: true}\nprecision: {compute: bf16, param_gather: bf16}\n"
        "lora: {rank: 8, weights: fp32, dropout: 0.1}"}) {
    for (const char* sharding : {"zero1", "zero3"}) {
      const std::string text = fmt::format(
          "model: {{layers: 4, hidden: 1024, heads: 8, ffn: 4096, vocab: 32000, activation: swiglu}}\ncluster: dgx-h100-ndr400\ngpus: 8\n"
          "parallel: {{dp: 8}}\nbatch: {{global: 32, micro: 1, sequence: 2048}}\noptimizer: {{sharding: {}}}\n{}\n",
          sharding, stack);
      const sim::Job job = job_of(text);
      sim::Evaluator evaluator(job);
      for (const int which : {0, 1, 2, 3}) {
        sim::Job other = job;
        other.workload = variant(job.workload, which);
        expect_equal(evaluator, other, text + " variant " + std::to_string(which));
      }
    }
  }
}

// Units of frozen weights hold their inputs under ZeRO-2 and 3 alone, which is what a model with few words holds most of.
TEST(Evaluator, TellsShardingApartWhereFrozenUnitsHoldInputs) {
  const sim::Job job = job_of(
      "{model: {layers: 40, hidden: 1024, heads: 8, ffn: 4096, vocab: 256, activation: swiglu}, cluster: dgx-h100-ndr400, gpus: 8, "
      "batch: {global: 32, micro: 4, sequence: 8192}, software: {like: peft-fsdp, adopts_gradients: false, flat_parameters: false, "
      "zero3_issue: 0 us, memory: {gradients_freed: false}}, recompute: full, lora: {rank: 8}, optimizer: {sharding: zero1}}\n");
  sim::Evaluator evaluator(job);
  for (const int which : {0, 1, 2}) {
    sim::Job other = job;
    other.workload = variant(job.workload, which);
    expect_equal(evaluator, other, "variant " + std::to_string(which));
  }
}

TEST(Evaluator, TellsPlansApartByWhatIsOffloaded) {
  const sim::Job job = job_of(
      "{model: {layers: 8, hidden: 1024, heads: 8, ffn: 4096, vocab: 1000, activation: gelu}, cluster: dgx-h100-ndr400, gpus: 2, parallel: "
      "{pp: 2}, "
      "batch: {global: 8, micro: 1, sequence: 1024}, offload: {activations: true}}\n");
  sim::Evaluator evaluator(job);
  expect_equal(evaluator, job, "all");
  sim::Job other = job;
  other.workload.offload_share = 0.5;
  expect_equal(evaluator, other, "half of each layer's");
  other.workload.offload_layers = 1;
  expect_equal(evaluator, other, "of one layer");
}

// Plans that share the order of a pipeline, fabrics and prices of calls, one after another in random order; some with many more
// micro-batches than fill the pipeline.
TEST(Evaluator, SaysTheSameWhateverItRemembers) {
  const sim::Job job = sim::load_job({"llama2-70b-128-a100", {}, {}});
  sim::Evaluator evaluator(job);
  std::mt19937 random(5);
  const auto one_of = [&](std::initializer_list<int> values) { return *(values.begin() + random() % values.size()); };
  int compared = 0;
  for (int i = 0; i < 4000 && compared < 400; ++i) {
    if (i % 50 == 49) evaluator.forget_plans();
    sim::Job other = job;
    workloads::Workload& plan = other.workload;
    plan.parallel.tp = one_of({1, 2, 4, 8});
    plan.parallel.pp = one_of({1, 2, 4, 8});
    plan.parallel.dp = 128 / (plan.parallel.tp * plan.parallel.pp);
    plan.parallel.cp = 1;
    plan.parallel.etp = plan.parallel.tp;
    plan.parallel.sp = plan.parallel.tp > 1;
    plan.parallel.vpp = plan.parallel.pp > 1 ? one_of({1, 2, 5}) : 1;
    plan.parallel.layers_per_stage.clear();
    plan.schedule = plan.parallel.vpp > 1 ? "interleaved-1f1b" : i % 3 == 0 ? "zb-h1" : i % 3 == 1 ? "gpipe" : "1f1b";
    plan.batch.micro = one_of({1, 2, 4});
    plan.batch.global = one_of({256, 1024, 4096});
    plan.recompute.kind = random() % 2 == 0 ? workloads::RecomputeKind::none : workloads::RecomputeKind::full;
    plan = variant(plan, one_of({0, 1, 2, 3}));
    plan.optimizer.shard_group = workloads::replica_sync(plan).ranks;
    if (plan.parallel.pp == 1 && plan.schedule != "1f1b") continue;
    if (plan.batch.global % (plan.parallel.dp * plan.batch.micro) != 0) continue;
    if (!workloads::ScheduleRegistry::get(plan.schedule).refusal(workloads::pipeline_shape(plan)).empty()) continue;
    expect_equal(evaluator, other, plan.schedule + " " + std::to_string(i));
    ++compared;
  }
  EXPECT_EQ(compared, 400);
}

}  // namespace
}  // namespace rehearse::tests
