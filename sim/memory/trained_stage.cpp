// What is the same for every rank of a stage.
#include <algorithm>
#include <memory>
#include <utility>

#include "sim/memory/allocator_training.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;

constexpr int most_uneven = 64;  // micro-batches of which each has its own tokens

bool alike(const TrainedRound& a, const TrainedRound& b) {
  const int later = b.slots.front().microbatch - a.slots.front().microbatch;
  return std::ranges::equal(a.slots, b.slots, [&](const Slot& x, const Slot& y) {
    return x.kind == y.kind && x.chunk == y.chunk && x.microbatch + later == y.microbatch;
  });
}

// same: micro-batches have the same tensors.
std::vector<TrainedRound> rounds_of(const std::vector<Slot>& order, bool same) {
  std::vector<TrainedRound> rounds(1);
  int live = 0;
  for (const Slot& slot : order) {
    if (live == 0 && !rounds.back().slots.empty()) rounds.emplace_back();
    rounds.back().slots.push_back(slot);
    live += slot.kind == Slot::Kind::forward ? 1 : -1;
  }
  for (std::size_t r = 1; same && r < rounds.size(); ++r) rounds[r].as_before = alike(rounds[r - 1], rounds[r]);
  return rounds;
}

bool same_tensors(const workloads::Workload& workload, const workloads::Unit& a, const workloads::Unit& b) {
  const bool experts = a.layer_kind == workloads::LayerKind::experts;
  return a.kind == b.kind && a.recomputed == b.recomputed && a.layer_kind == b.layer_kind &&
         !(experts && workload.experts.chunks_of(a.first_layer) != workload.experts.chunks_of(b.first_layer));
}

// That a rank's experts get in a unit.
double pairs_in(const workloads::Unit& unit, const workloads::ExpertLoads* loads, int expert_rank, int microbatch) {
  return unit.layer_kind == workloads::LayerKind::experts ? loads->received(expert_rank, unit.first_layer, microbatch) : 0;
}

// [chunk][unit]
std::vector<std::vector<double>> pairs_in(const workloads::StageProgram& program, const workloads::ExpertLoads& loads, int expert_rank,
                                          int microbatch) {
  std::vector<std::vector<double>> pairs;
  for (const auto& chunk : program.chunks) {
    std::vector<double>& of_chunk = pairs.emplace_back();
    for (const workloads::Unit& unit : chunk) of_chunk.push_back(pairs_in(unit, &loads, expert_rank, microbatch));
  }
  return pairs;
}

}  // namespace

TrainedStage::TrainedStage(const workloads::Workload& of, const workloads::MemoryHabits& habits_of, int stage,
                           const workloads::StageProgram& its, const Workspaces& its_workspaces, int expert_rank, int step)
    : workload(of), habits(habits_of), program(its), workspaces(its_workspaces) {
  const auto loads = workload.model.moe ? std::make_unique<workloads::ExpertLoads>(workload, step) : nullptr;
  const workloads::Unit* last = nullptr;
  for (const auto& chunk : program.chunks) {
    auto& kinds_of_chunk = kind_of.emplace_back();
    for (const workloads::Unit& unit : chunk) {
      if (last == nullptr || !same_tensors(workload, unit, *last)) {
        kinds.push_back(tensors_of(workload, habits, unit));
        kind_parameters.push_back(parameters_of(workload, unit));
        kind_pairs.push_back(pairs_in(unit, loads.get(), expert_rank, 0));
      }
      last = &unit;
      kinds_of_chunk.push_back(kinds.size() - 1);
      const std::vector<double>& sizes = kind_parameters.back();
      parameters.insert(parameters.end(), sizes.begin(), sizes.end());
      const std::vector<double> of_experts = expert_parameters_of(workload, unit);
      expert_parameters.insert(expert_parameters.end(), of_experts.begin(), of_experts.end());
    }
  }
  if (workload.optimizer.zero_stage > 0) expert_shards = workloads::replica_sync(workload).expert_ranks;
  workloads::PipelineShape shape = workloads::pipeline_shape(workload);
  const bool each = loads && !loads->even();
  microbatches = shape.microbatches = std::min(shape.microbatches, each ? std::max(most_uneven, 2 * shape.stages) : 2 * shape.stages);
  for (int i = 0; each && i < microbatches; ++i) pairs.push_back(pairs_in(program, *loads, expert_rank, i));
  rounds = rounds_of(workloads::ScheduleRegistry::get(workload.schedule).order(shape, stage), !uneven());
  const workloads::Shard shard = workloads::shard_of(workload);
  hidden = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
}

namespace {

// A buffer holds parameters in the order of their gradients, last ones first; the rank has one piece of it.
std::vector<double> piece_of(const std::vector<double>& parameters, int shard, int shards) {
  double all = 0;
  for (const double size : parameters) all += size;
  const double from = all / shards * shard, to = all / shards * (shard + 1);
  std::vector<double> own;
  double at = 0;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const double size = parameters[i];
    const double part = std::min(at + size, to) - std::max(at, from);
    if (part >= 1) own.push_back(part);
    at += size;
  }
  return own;
}

}  // namespace

// nanotron's ranks have a piece of each tensor.
std::vector<double> parameters_of_shard(const TrainedStage& stage, int shard, int shards) {
  if (stage.by_tensor()) {
    std::vector<double> own = stage.parameters;
    for (double& size : own) size /= shards;
    return own;
  }
  std::vector<double> own = piece_of(stage.parameters, shard, shards);
  const int experts = stage.expert_shards > 1 ? static_cast<int>(std::int64_t{shard} * stage.expert_shards / shards) : 0;
  const std::vector<double> of_experts = piece_of(stage.expert_parameters, experts, stage.expert_shards);
  own.insert(own.end(), of_experts.begin(), of_experts.end());
  return own;
}

}  // namespace rehearse::sim
