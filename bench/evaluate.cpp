// Plans a second by formula: step, phases and memory of llama2-70b on 1,024 GPUs over a space that mixes everything a plan can choose.
#include <benchmark/benchmark.h>

#include "bench/seconds.hpp"
#include "sim/analytic/evaluator.hpp"
#include "sim/analytic/predict.hpp"

namespace rehearse {
namespace {

using workloads::RecomputeKind;
using workloads::Workload;

// Axes from the outermost on; sharding and overlaps vary fastest.
class Space {
 public:
  explicit Space(Workload base) : base_(std::move(base)) {
    for (const int tp : {1, 2, 4, 8})
      for (const int pp : {1, 2, 4, 8, 16})
        for (const int cp : {1, 2}) add_layouts(tp, pp, cp);
  }
  [[nodiscard]] const std::vector<Workload>& plans() const { return plans_; }

 private:
  void add_layouts(int tp, int pp, int cp) {
    for (const char* schedule : {"1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-h2"}) {
      for (const int vpp : {1, 2, 5}) {
        const int gpus = 1024, layers = base_.model.layers;
        if ((std::string_view(schedule) == "interleaved-1f1b") != (vpp > 1) || (pp == 1 && std::string_view(schedule) != "1f1b")) continue;
        if (layers % (pp * vpp) != 0) continue;
        for (const int micro : {1, 2, 4}) {
          Workload plan = base_;
          plan.parallel.tp = tp;
          plan.parallel.pp = pp;
          plan.parallel.cp = cp;
          plan.parallel.vpp = vpp;
          plan.parallel.dp = gpus / (tp * pp * cp);
          plan.parallel.sp = tp > 1;
          plan.parallel.layers_per_stage.clear();
          plan.batch.micro = micro;
          plan.schedule = schedule;
          plan.optimizer.shard_group = 0;
          if (plan.batch.global % (plan.parallel.dp * micro) != 0) continue;
          if (!workloads::ScheduleRegistry::get(schedule).refusal(workloads::pipeline_shape(plan)).empty()) continue;
          add_variants(plan);
        }
      }
    }
  }

  void add_variants(Workload plan) {
    for (const RecomputeKind recompute : {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
      plan.recompute.kind = recompute;
      for (const bool tp : {false, true}) {
        plan.overlap.tp = tp && plan.parallel.tp > 1;
        if (tp != plan.overlap.tp) continue;
        for (int bits = 0; bits < 32; ++bits) {
          plan.optimizer.zero_stage = bits / 8;
          plan.overlap.pp = (bits & 1) != 0;
          plan.overlap.dp_gradients = (bits & 2) != 0;
          plan.overlap.dp_parameters = (bits & 4) != 0;
          if (plan.overlap.dp_parameters && plan.optimizer.zero_stage == 0) continue;
          if (!plan.overlap.pp && plan.parallel.pp == 1) continue;
          plans_.push_back(plan);
        }
      }
    }
  }

  Workload base_;
  std::vector<Workload> plans_;
};

void evaluate(benchmark::State& state) {
  static const sim::Job job = sim::load_job({"llama2-70b-1024-a100", {}, {}});
  static const Space space(job.workload);
  const std::vector<Workload>& plans = space.plans();
  const std::size_t share = plans.size() / static_cast<std::size_t>(state.threads());
  const std::size_t first = share * static_cast<std::size_t>(state.thread_index());
  for (auto _ : state) {
    sim::Evaluator evaluator(job);
    for (std::size_t i = first; i < first + share; ++i) benchmark::DoNotOptimize(evaluator(plans[i]).step_s);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(share) * state.iterations());
  state.counters["plans"] = benchmark::Counter(static_cast<double>(plans.size()), benchmark::Counter::kAvgThreads);
}

// Seconds of a plan by predict(), which compiles and prices it anew, over those by the Evaluator; every 211th plan by predict().
void evaluate_against_predict(benchmark::State& state) {
  sim::Job job = sim::load_job({"llama2-70b-1024-a100", {}, {}});
  const Space space(job.workload);
  const std::vector<Workload>& plans = space.plans();
  double evaluated_s = 0, predicted_s = 0;
  std::size_t predicted = 0;
  for (auto _ : state) {
    sim::Evaluator evaluator(job);
    evaluated_s += seconds_of([&] {
      for (const Workload& plan : plans) benchmark::DoNotOptimize(evaluator(plan).step_s);
    });
    predicted_s += seconds_of([&] {
      for (std::size_t i = 0; i < plans.size(); i += 211, ++predicted) {
        job.workload = plans[i];
        benchmark::DoNotOptimize(sim::predict(job).step_s);
      }
    });
  }
  const double plans_evaluated = static_cast<double>(plans.size()) * static_cast<double>(state.iterations());
  state.counters["ratio"] = (predicted_s / static_cast<double>(predicted)) / (evaluated_s / plans_evaluated);
}

BENCHMARK(evaluate_against_predict)->Iterations(1)->Repetitions(3)->Unit(benchmark::kMillisecond);
BENCHMARK(evaluate)->Threads(1)->Threads(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rehearse

BENCHMARK_MAIN();
