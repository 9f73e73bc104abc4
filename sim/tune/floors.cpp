#include "sim/tune/floors.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "sim/cost/queue.hpp"
#include "sim/memory/ranks_at_rest.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/routing.hpp"
#include "workloads/segments.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {
namespace {

using workloads::Segment;
using workloads::Workload;

// Computation of a unit's passes, as UnitPricer has it, with every call, and every wait for the host, at nothing.
class Computation {
 public:
  Computation(const System& system, const Workload& workload) : system_(system), workload_(workload) {
    const bool even = workload.model.moe && workloads::RoutingRegistry::get(workload.experts.routing).even();
    if (even && workload.experts.layer_chunks.empty()) experts_.emplace(workload);
  }

  [[nodiscard]] double of(const workloads::UnitProgram& program) const {
    const bool split = !program.backward_input.empty() || !program.backward_weight.empty();
    const double backward = split ? of(program.backward_input) + of(program.backward_weight) : of(program.backward);
    return of(program.forward) + of(program.recompute) + backward;
  }

 private:
  // In the host's queue: the device's own time, with nothing to wait for.
  [[nodiscard]] double on_device(const workloads::Operator& op) const { return device_seconds(system_.gpu, system_.software, op); }
  [[nodiscard]] double on_device(const std::vector<workloads::Operator>& operators) const {
    double sum = 0;
    for (const workloads::Operator& op : operators) sum += on_device(op);
    return sum;
  }
  [[nodiscard]] double of(const workloads::Operator& op) const { return operator_seconds(system_.gpu, system_.software, op); }
  [[nodiscard]] double of(const std::vector<workloads::Operator>& operators) const {
    double sum = 0;
    for (const workloads::Operator& op : operators) sum += of(op);
    return sum;
  }
  [[nodiscard]] double of(const std::vector<Segment>& segments) const {
    double sum = 0;
    for (const Segment& segment : segments) sum += of(segment);
    return sum;
  }
  [[nodiscard]] double of(const Segment& segment) const {
    if (const auto* compute = std::get_if<workloads::ComputeSegment>(&segment)) return on_device(compute->operators);
    if (const auto* split = std::get_if<workloads::SplitSegment>(&segment)) return split->splits * on_device(split->product);
    if (const auto* beside = std::get_if<workloads::BesideSegment>(&segment)) return on_device(beside->product);
    if (const auto* ring = std::get_if<workloads::RingSegment>(&segment)) return workload_.parallel.cp * on_device(ring->ring.step);
    const auto* expert = std::get_if<workloads::ExpertSegment>(&segment);
    if (expert == nullptr || !experts_) return 0;
    workloads::ExpertWork work = experts_->work(expert->experts, 0, first_layer(), 0);
    const double once = of(workloads::operators_of(workload_, work));
    work.again = experts_->again(expert->experts);
    const double again = work.again ? of(workloads::operators_of(workload_, work)) : 0;
    return workload_.experts.chunks_of(first_layer()) * (again + once);
  }
  // With experts; all are alike.
  [[nodiscard]] int first_layer() const {
    int layer = 0;
    while (!workload_.model.has_experts(layer)) ++layer;
    return layer;
  }

  const System& system_;
  const Workload& workload_;
  std::optional<workloads::ExpertLayer> experts_;
};

// Whether two plans have the same units but for their ShardedOperators.
bool same_units(const Workload& a, const Workload& b) {
  const auto numbers = [](const Workload& w) {
    const workloads::Parallel& p = w.parallel;
    const workloads::ExpertPlan& e = w.experts;
    return std::tuple(p.tp, p.cp, p.ep, p.etp, p.sp, p.cp_comm, w.batch.micro, w.batch.sequence, w.batch.document, w.attention,
                      w.recompute.kind, w.overlap.tp, w.overlap.tp_splits, w.overlap.ep, w.offload_activations, e.dispatcher, e.chunks,
                      e.chunk_recompute, e.nodes_per_token, e.capacity_factor);
  };
  return numbers(a) == numbers(b) && a.recompute.modules == b.recompute.modules && a.recompute.kept == b.recompute.kept &&
         a.experts.layer_chunks == b.experts.layer_chunks && a.lora == b.lora && workloads::ends_meet(a) == workloads::ends_meet(b) &&
         (a.schedule == b.schedule ||
          workloads::ScheduleRegistry::get(a.schedule).splits_backward() == workloads::ScheduleRegistry::get(b.schedule).splits_backward());
}

std::uint64_t hash_of(const Workload& w) {
  constexpr std::uint64_t prime = 0x100000001b3;  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const int value : {w.parallel.tp, w.parallel.cp, w.parallel.ep, w.parallel.etp, w.batch.micro, w.batch.sequence, w.batch.document,
                          static_cast<int>(w.recompute.kind), static_cast<int>(w.overlap.tp), w.experts.chunks}) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * prime;
  }
  return hash;
}

}  // namespace

bool needs_no_less_than_smaller(const Workload& workload) {
  const workloads::PipelineShape shape = workloads::pipeline_shape(workload);
  const bool drawn =
      workload.model.moe && (workload.experts.chunks == 0 || !workloads::RoutingRegistry::get(workload.experts.routing).even());
  // What fills an expert's rows up to a multiple is less of a larger micro-batch.
  return !drawn && workload.experts.pad_to <= 0 && shape.microbatches >= 2 * shape.stages * shape.chunks;
}

std::size_t Floors::layer_part(const workloads::LayerShape& shape, bool again, bool wide) {
  const std::size_t of_shape = static_cast<std::size_t>(shape.kind) * reaches + static_cast<std::size_t>(shape.reach);
  return first_layer + 4 * of_shape + (wide ? 2 : 0) + (again ? 1 : 0);
}

const Floors::Units& Floors::units(const Workload& workload) {
  std::vector<std::unique_ptr<Units>>& alike = units_[hash_of(workload)];
  const workloads::ShardedOperators operators = workloads::sharded_operators(workload);
  for (const std::unique_ptr<Units>& one : alike) {
    if (one->operators == operators && same_units(one->of, workload)) return *one;
  }
  Units& made = *alike.emplace_back(std::make_unique<Units>());
  made.of = workload;
  made.operators = operators;
  made.standing = workloads::standing_bytes(workload, base_.system.software.memory.habits);
  const Workload in_bf16 = workloads::of_wide_layers(made.of);
  const Computation computation(base_.system, made.of), of_wide(base_.system, in_bf16);
  const workloads::Cutter cutter(made.of, workloads::Granularity::layer);
  const auto put = [&](std::size_t part, const workloads::BlockProgram& block, bool wide = false) {
    const workloads::UnitProgram unit = cutter.unit(block);
    made.parts[part] = {(wide ? of_wide : computation).of(unit), unit.parameters, unit.expert_parameters, unit.frozen_parameters,
                        workloads::base_parameters(unit)};
  };
  const workloads::Model& model = workload.model;
  std::set<std::pair<workloads::LayerShape, bool>> shapes;
  for (int layer = 0; layer < model.layers; ++layer) shapes.emplace(workloads::shape_of(model, layer), workloads::is_wide(workload, layer));
  for (const auto& [shape, wide] : shapes) {
    const Workload& own = wide ? in_bf16 : made.of;
    for (const bool again : {false, true})
      put(layer_part(shape, again, wide), workloads::layer_program(own, again, shape.kind, shape.reach), wide);
  }
  if (model.vocab > 0) {
    put(embedding, workloads::embedding_program(made.of));
    put(head, workloads::head_program(made.of));
  }
  if (model.vocab > 0 && model.mtp > 0) {
    put(prediction, workloads::prediction_program(made.of, false, false));
    put(prediction_again, workloads::prediction_program(made.of, true, false));
  }
  return made;
}

const std::vector<Floors::StageCounts>& Floors::stages(const Workload& workload) {
  const workloads::Parallel& p = workload.parallel;
  const bool full = workload.recompute.kind == workloads::RecomputeKind::full;
  const int full_layers = !full                                ? 0
                          : workload.recompute.full_layers < 0 ? workload.model.layers + workload.model.mtp
                                                               : workload.recompute.full_layers;
  const auto [it, added] =
      stages_.try_emplace(Shape{&workloads::ScheduleRegistry::get(workload.schedule), p.pp, p.vpp, full_layers, p.layers_per_stage});
  if (!added) return it->second;
  const workloads::Model& model = workload.model;
  for (const std::vector<workloads::Chunk>& chunks : workloads::split_layers(workload)) {
    StageCounts& stage = it->second.emplace_back();
    int again = full_layers;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const workloads::Chunk& chunk = chunks[c];
      const auto add = [&](std::size_t part, int count) {
        stage.all[part] += count;
        if (c == 0) stage.first_chunk[part] += count;
      };
      for (int layer = chunk.first_layer; layer < chunk.first_layer + chunk.layers; ++layer) {
        add(layer_part(workloads::shape_of(model, layer), again-- > 0, workloads::is_wide(workload, layer)), 1);
      }
      if (chunk.embedding && model.vocab > 0) add(embedding, 1);
      if (!chunk.head || model.vocab == 0) continue;
      add(head, 1);
      for (int k = 0; k < model.mtp; ++k) add(again-- > 0 ? prediction_again : prediction, 1);
    }
  }
  return it->second;
}

double Floors::step_s(const Workload& workload) {
  const Units& of_units = units(workload);
  const workloads::Schedule& schedule = workloads::ScheduleRegistry::get(workload.schedule);
  const auto seconds = [&](const Counts& counts) {
    double sum = 0;
    for (std::size_t i = 0; i < part_count; ++i) sum += counts[i] * of_units.parts[i].seconds;
    return sum;
  };
  const bool in_line = !schedule.splits_backward() && !schedule.mirrors();
  const double microbatches = workload.microbatches() / (schedule.mirrors() ? 2 : 1);  // through each chunk
  double longest = 0, before = 0;
  for (const StageCounts& stage : stages(workload)) {
    longest = std::max(longest, (in_line ? before : 0) + microbatches * seconds(stage.all));
    before += seconds(stage.first_chunk);
  }
  return longest;
}

double Floors::needed_bytes(const Workload& workload) {
  const Units& of_units = units(workload);
  const workloads::ReplicaSync sync = workloads::replica_sync(workload);
  const RanksAtRest at_rest(base_.system, workload, sync, of_units.standing);
  double most = 0;
  const Counts* last = nullptr;
  for (const StageCounts& stage : stages(workload)) {
    if (last != nullptr && *last == stage.all) continue;
    last = &stage.all;
    workloads::Parameters own;
    for (std::size_t i = 0; i < part_count; ++i) {
      own.all += stage.all[i] * of_units.parts[i].all;
      own.experts += stage.all[i] * of_units.parts[i].experts;
      own.frozen += stage.all[i] * of_units.parts[i].frozen;
      if (i != embedding && i != head) own.layers += stage.all[i] * of_units.parts[i].base;
    }
    const RankAtRest resting = at_rest.of(own);
    RankMemory memory = resting.rank();
    resting.raise_to_update(memory);
    resting.add_cache(memory);
    most = std::max(most, memory.needed_bytes());
  }
  return most;
}

}  // namespace rehearse::sim
