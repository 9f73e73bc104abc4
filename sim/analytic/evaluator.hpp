// predict() for one plan after another of the same model on the same system: in numbers, with what plans share made once. For one thread;
// several threads have one each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/analytic/step_formula.hpp"
#include "sim/job/job.hpp"
#include "sim/memory/peak_slots.hpp"
#include "workloads/operators/sharded_operators.hpp"

namespace rehearse::sim {

struct Evaluation {
  double step_s = 0;
  PhaseTimes mean;  // over all ranks; adds up to step_s. Nothing where it was not asked for
  // Of the rank that needs most, as StepResult::memory.fullest().
  double peak_bytes = 0, needed_bytes = 0;
  bool fits = false;
};

class Evaluator {
 public:
  // Orders of pipelines, whatever runs in them: evaluators of one thread may share them.
  class Orders;
  // Must outlive the evaluator.
  explicit Evaluator(const Job& job);
  Evaluator(const Job& job, std::shared_ptr<Orders> orders) : job_(job), orders_(std::move(orders)) {}
  [[nodiscard]] static std::shared_ptr<Orders> orders();

  // A workload that differs from the job's in parallel, batch, schedule, attention, recompute, optimizer, overlap, offload_activations,
  // and in how its experts exchange tokens, on as many GPUs; a job with it would be valid. To the last bit what predict() says.
  [[nodiscard]] Evaluation operator()(const workloads::Workload& workload);
  // The same without `mean`.
  [[nodiscard]] Evaluation without_phases(const workloads::Workload& workload);

  // Of what it remembers, plans and their prices take most: they are worked out anew, the order of pipelines and fabrics are kept.
  void forget_plans() { plans_.clear(); }
  // Steps of pipelines' orders that it remembers.
  [[nodiscard]] std::size_t steps_held() const;

 private:
  // What ranks that lie alike share.
  struct Fabric {
    CommunicationModel model;
    PriceBook::Calls calls;
  };
  // What plans share that differ in what overlaps between replicas and stages, and in sharding where no operator depends on it.
  struct Plan {
    Plan(const Job& job, Fabric& fabric, const workloads::Workload& workload);
    workloads::Workload workload;
    workloads::ShardedOperators operators;
    workloads::Compiled compiled;
    PriceBook prices;
    PlanCost cost;
    std::vector<workloads::UnitMemory> memories;           // as cost.units, without what replicas exchange
    std::vector<workloads::Parameters> exchanged_at_once;  // likewise
    double standing = 0;
    std::vector<HeldUnits> held;                         // [stage]
    const std::vector<PeakSlots>* peak_slots = nullptr;  // likewise, once they are looked at
    bool walked_by_slots = false;
  };
  // Of RankGrid, and so of what a communication costs.
  using Grid = std::tuple<int, int, int, int, int, int, int, bool, std::vector<std::string>>;

  [[nodiscard]] Evaluation evaluate(const workloads::Workload& workload, bool by_phase);
  [[nodiscard]] Plan& plan_of(const workloads::Workload& workload);
  [[nodiscard]] Fabric& fabric_of(const workloads::Workload& workload);
  void add_memory(Plan& plan, const workloads::Workload& workload, const workloads::ReplicaSync& sync, Evaluation& evaluation);
  [[nodiscard]] Evaluation by_predict(const workloads::Workload& workload) const;

  const Job& job_;
  std::map<Grid, std::unique_ptr<Fabric>> fabrics_;
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Plan>>> plans_;  // by hash; never walked through
  std::shared_ptr<Orders> orders_;
  std::vector<workloads::UnitMemory> memories_;
};

}  // namespace rehearse::sim
