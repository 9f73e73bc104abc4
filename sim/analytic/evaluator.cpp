#include "sim/analytic/evaluator.hpp"

#include <algorithm>
#include <optional>

#include "sim/analytic/predict.hpp"
#include "sim/communication_of.hpp"
#include "sim/memory/ranks_at_rest.hpp"

namespace rehearse::sim {
namespace {

using workloads::Workload;

bool same_parallel(const workloads::Parallel& a, const workloads::Parallel& b) {
  return a.tp == b.tp && a.cp == b.cp && a.pp == b.pp && a.dp == b.dp && a.ep == b.ep && a.etp == b.etp && a.vpp == b.vpp &&
         a.cp_comm == b.cp_comm && a.sp == b.sp && a.order == b.order && a.layers_per_stage == b.layers_per_stage;
}

bool same_recompute(const workloads::Recompute& a, const workloads::Recompute& b) {
  return a.kind == b.kind && a.modules == b.modules && a.kept == b.kept && a.full_layers == b.full_layers &&
         a.shards_inputs == b.shards_inputs && a.stops_early == b.stops_early && a.by_product == b.by_product;
}

bool same_experts(const workloads::ExpertPlan& a, const workloads::ExpertPlan& b) {
  return a.dispatcher == b.dispatcher && a.chunks == b.chunks && a.chunk_recompute == b.chunk_recompute &&
         a.nodes_per_token == b.nodes_per_token && a.capacity_factor == b.capacity_factor && a.layer_chunks == b.layer_chunks;
}

// Whether what stands around the operators of a unit, or what it holds, differs by optimizer.zero_stage: the host's hooks, FSDP's copies,
// inputs of frozen units that FSDP holds.
bool depends_on_stage(const Workload& w, const Software& software) {
  const bool held_inputs = w.lora.on() && software.memory.habits.frozen_inputs;
  return software.zero3_issue_s > 0 || w.optimizer.copies || w.optimizer.flat || w.optimizer.root || held_inputs;
}

// Whether the update's operators, which a plan's prices hold, are the same: buckets that the host checks are as many as are reduced.
bool same_buckets(const Workload& a, const Workload& b) {
  return a.fusions.gradient_checks == 0 || a.overlap.dp_gradients == b.overlap.dp_gradients;
}

// All but overlap.{pp, dp_gradients, dp_parameters} and optimizer.zero_stage.
bool same_plan(const Workload& a, const Workload& b) {
  const workloads::Overlap &x = a.overlap, &y = b.overlap;
  const workloads::Optimizer &o = a.optimizer, &p = b.optimizer;
  return same_parallel(a.parallel, b.parallel) && a.batch.global == b.batch.global && a.batch.micro == b.batch.micro &&
         a.batch.sequence == b.batch.sequence && a.batch.document == b.batch.document && a.schedule == b.schedule &&
         a.attention == b.attention && same_recompute(a.recompute, b.recompute) && a.lora == b.lora && o.shard_group == p.shard_group &&
         o.on_cpu == p.on_cpu && o.by_tensor == p.by_tensor && o.by_adapter == p.by_adapter && o.all_reduces == p.all_reduces &&
         o.by_owner == p.by_owner && o.gathered_again == p.gathered_again && o.no_sync == p.no_sync && o.copies == p.copies &&
         o.flat == p.flat && o.joins_at_once == p.joins_at_once && o.root == p.root && a.offload_activations == b.offload_activations &&
         a.offload_layers == b.offload_layers && a.offload_share == b.offload_share && a.offload_weights == b.offload_weights &&
         x.tp == y.tp && x.tp_splits == y.tp_splits && x.cp == y.cp && x.ep == y.ep && same_experts(a.experts, b.experts) &&
         same_buckets(a, b);
}

std::uint64_t hash_of(const Workload& w) {
  constexpr std::uint64_t prime = 0x100000001b3;  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](auto value) { hash = (hash ^ static_cast<std::uint64_t>(value)) * prime; };
  const workloads::Parallel& p = w.parallel;
  for (const int value : {p.tp, p.cp, p.pp, p.dp, p.ep, p.etp, p.vpp, w.batch.global, w.batch.micro, w.batch.sequence, w.batch.document,
                          w.recompute.full_layers, w.experts.chunks, w.overlap.tp_splits}) {
    mix(value);
  }
  for (const bool flag : {p.sp, w.overlap.tp, w.overlap.cp, w.overlap.ep}) mix(flag);
  mix(p.cp_comm);
  mix(w.attention);
  mix(w.recompute.kind);
  for (const workloads::RecomputeModule module : w.recompute.modules) mix(module);
  for (const workloads::LayerOutput output : w.recompute.kept) mix(output);
  for (const char letter : w.schedule) mix(letter);
  return hash;
}

// What Plan does not hold in numbers goes through predict().
bool needs_predict(const Workload& w, const workloads::MemoryHabits& habits) {
  const bool uneven = w.model.moe && !workloads::RoutingRegistry::get(w.experts.routing).even();
  return uneven || w.offload_activations || w.overlap.ep || w.optimizer.on_cpu || workloads::makes_gradients_anew(w, habits);
}

}  // namespace

class Evaluator::Orders {
 public:
  Workspace workspace;

  // [stage]
  const std::vector<PeakSlots>& peak_slots(const Plan& plan) {
    const workloads::PipelineShape& shape = plan.compiled.shape;
    // What is at its peak in a round is so in all of them.
    const int microbatches = workspace.slot_order(plan.workload, plan.compiled).typical_microbatches();
    std::vector<PeakSlots>& slots = peak_slots_[{plan.compiled.schedule, shape.stages, shape.chunks, microbatches}];
    if (!slots.empty()) return slots;
    Workload typical = plan.workload;
    typical.batch.global = microbatches * typical.parallel.dp * typical.batch.micro;
    for (int s = 0; s < shape.stages; ++s) slots.emplace_back(typical, plan.compiled, s);
    return slots;
  }

 private:
  using Shape = std::tuple<const workloads::Schedule*, int, int, int>;  // schedule, stages, chunks, micro-batches
  std::map<Shape, std::vector<PeakSlots>> peak_slots_;
};

std::shared_ptr<Evaluator::Orders> Evaluator::orders() { return std::make_shared<Orders>(); }

Evaluator::Evaluator(const Job& job) : Evaluator(job, orders()) {}

std::size_t Evaluator::steps_held() const { return orders_->workspace.steps_held(); }

Evaluator::Plan::Plan(const Job& job, Fabric& fabric, const Workload& given)
    : workload(given),
      operators(workloads::sharded_operators(workload)),
      compiled(workloads::compile(workload)),
      prices(fabric.model, compiled.grid, compiled.shape.stages, &fabric.calls),
      cost(job.system, workload, compiled, prices),
      standing(workloads::standing_bytes(workload, job.system.software.memory.habits)) {
  memories.resize(cost.units.size());
  exchanged_at_once.resize(cost.units.size());
  std::vector<bool> known(cost.units.size());
  std::optional<workloads::ExpertLoads> loads;
  if (workload.model.moe) loads.emplace(workload);
  std::size_t at = 0;
  walked_by_slots = true;
  for (const workloads::StageProgram& stage : compiled.stages) {
    HeldUnits& of_stage = held.emplace_back();
    for (const auto& chunk : stage.chunks) {
      const std::span<const std::uint32_t> holding = std::span(cost.order).subspan(at, chunk.size());
      walked_by_slots = of_stage.add(chunk, compiled.schedule->splits_backward(), holding) && walked_by_slots;
      at += chunk.size();
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        const std::uint32_t u = holding[i];
        if (known[u]) continue;
        known[u] = true;
        memories[u] = workloads::unit_memory(workload, job.system.software.memory.habits, chunk[i]);
        exchanged_at_once[u] = workloads::exchanged_at_once(workload, job.system.software.memory.habits, chunk[i]);
        if (chunk[i].layer_kind == workloads::LayerKind::experts)
          memories[u] = memories[u].with_tokens(loads->received(0, chunk[i].first_layer, 0));
      }
    }
    of_stage.memories = memories;
    walked_by_slots = of_stage.add_up(compiled.shape.microbatches) && walked_by_slots;
  }
}

Evaluator::Plan& Evaluator::plan_of(const Workload& workload) {
  std::vector<std::unique_ptr<Plan>>& alike = plans_[hash_of(workload)];
  const bool by_stage = depends_on_stage(workload, job_.system.software);
  const workloads::ShardedOperators operators = workloads::sharded_operators(workload);
  for (const std::unique_ptr<Plan>& plan : alike) {
    const bool same_stage = plan->workload.optimizer.zero_stage == workload.optimizer.zero_stage;
    const bool same_operators = same_stage || (!by_stage && plan->operators == operators);
    if (same_operators && same_plan(plan->workload, workload)) return *plan;
  }
  return *alike.emplace_back(std::make_unique<Plan>(job_, fabric_of(workload), workload));
}

Evaluator::Fabric& Evaluator::fabric_of(const Workload& workload) {
  const workloads::Parallel& p = workload.parallel;
  const bool mirrors = workloads::ScheduleRegistry::get(workload.schedule).mirrors();
  std::unique_ptr<Fabric>& known = fabrics_[{p.tp, p.cp, p.pp, p.dp, p.ep, p.etp, workload.optimizer.shard_group, mirrors, p.order}];
  if (!known) {
    known = std::make_unique<Fabric>(Fabric{communication_of(job_.system, workload), {}});
  }
  return *known;
}

// As predicted_memory(). What a stage needs grows with its peak: those below the highest so far are left out.
void Evaluator::add_memory(Plan& plan, const Workload& workload, const workloads::ReplicaSync& sync, Evaluation& evaluation) {
  memories_.clear();
  for (std::size_t u = 0; u < plan.memories.size(); ++u)
    memories_.push_back(plan.memories[u].with_replicas(sync, plan.exchanged_at_once[u]));
  if (plan.peak_slots == nullptr) {
    plan.peak_slots = &orders_->peak_slots(plan);
    for (std::size_t s = 0; s < plan.held.size(); ++s) plan.held[s].look_through((*plan.peak_slots)[s]);
  }
  const std::vector<PeakSlots>& slots = *plan.peak_slots;
  const RanksAtRest at_rest(job_.system, workload, sync, plan.standing);
  const double message = workload.overlap.pp ? plan.compiled.message_bytes : 0;
  evaluation.fits = true;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    HeldUnits& held = plan.held[s];
    held.memories = memories_;
    workloads::list_whole_gradients(workload, job_.system.software.memory.habits, sync, plan.compiled.stages[s], held.whole_gradients);
    const RankAtRest resting = at_rest.of(plan.cost.parameters[s]);
    RankMemory memory = resting.rank();
    memory.at_peak = peak_of(slots[s], held, sync, message, resting.always(), true, evaluation.peak_bytes).held;
    resting.raise_to_update(memory);
    resting.add_cache(memory);
    evaluation.fits = evaluation.fits && memory.fits();
    if (memory.needed_bytes() <= evaluation.needed_bytes) continue;
    evaluation.needed_bytes = memory.needed_bytes();
    evaluation.peak_bytes = memory.peak_bytes();
  }
}

Evaluation Evaluator::by_predict(const Workload& workload) const {
  Job job = job_;
  job.workload = workload;
  const StepResult result = predict(job);
  const RankMemory& fullest = *result.memory.fullest();
  return {result.step_s, result.mean, fullest.peak_bytes(), fullest.needed_bytes(), result.memory.fits()};
}

Evaluation Evaluator::operator()(const Workload& workload) { return evaluate(workload, true); }
Evaluation Evaluator::without_phases(const Workload& workload) { return evaluate(workload, false); }

Evaluation Evaluator::evaluate(const Workload& workload, bool by_phase) {
  if (needs_predict(workload, job_.system.software.memory.habits)) return by_predict(workload);
  Plan& plan = plan_of(workload);
  if (!plan.walked_by_slots) return by_predict(workload);
  const workloads::ReplicaSync sync = workloads::replica_sync(workload, plan.compiled.schedule->mirrors());
  const StepTerms terms = step_terms(job_.system, workload, plan.compiled, sync, plan.cost, plan.prices, orders_->workspace, by_phase);
  Evaluation evaluation;
  evaluation.step_s = terms.step_s;
  if (by_phase) {
    MeanPhases mean;
    for (const PhaseTimes& stage : terms.phases) mean.add(stage, job_.system.gpus / plan.compiled.shape.stages);
    evaluation.mean = mean.mean();
  }
  add_memory(plan, workload, sync, evaluation);
  return evaluation;
}

}  // namespace rehearse::sim
