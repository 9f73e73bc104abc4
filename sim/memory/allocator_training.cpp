#include "sim/memory/allocator_training.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "sim/memory/allocator_device.hpp"
#include "sim/memory/rank_weights.hpp"
#include "workloads/operators/shard.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using Device = AllocatorDevice;
using Block = Device::Block;

constexpr int steps = 3;  // the first has no moments yet, and what the second takes beside them the third may split differently
// PyTorch's NCCL marks what a collective reads and writes as used by its stream (record_stream in ProcessGroupNCCL, off only with
// TORCH_NCCL_AVOID_RECORD_STREAMS): freed, it is not free before the GPU has come past the collective, and the host is ahead of the GPU.
// How far is not known: it is taken to wait for it after every second unit, which the 70B and the 405B runs of SimuMax ask for alike
// (tests/memory).
constexpr int units_ahead = 2;

// A unit's steps as its device is asked for them; those that take nothing are left out.
struct Action {
  TensorStep::Kind kind;
  int tensor, name;
  Device::Request request;  // of what is not given back
};
struct UnitActions {
  UnitActions(const UnitTensors& unit, double workspace, Device& device)
      : forward(actions(unit.forward, workspace, device)),
        backward(actions(unit.backward, workspace, device)),
        tensors(static_cast<std::size_t>(unit.tensors)) {}

  std::vector<Action> forward, backward;
  std::size_t tensors;

 private:
  static std::vector<Action> actions(const std::vector<TensorStep>& steps, double workspace, Device& device) {
    std::vector<Action> made;
    made.reserve(steps.size());
    for (const TensorStep& step : steps) {
      const double bytes = step.bytes == TensorStep::workspace ? workspace : step.bytes;
      const Device::Request request = device.request(bytes, compute_stream, step.communicated ? nccl_stream : compute_stream);
      const bool takes_none = step.kind == TensorStep::Kind::give || step.kind == TensorStep::Kind::pass_on;
      if (request || takes_none) made.push_back({step.kind, step.tensor, step.name, request});
    }
    return made;
  }
};

class Training {
 public:
  Training(const TrainedStage& stage, const std::vector<double>& own, double bytes)
      : stage_(stage),
        own_(own),
        device_(bytes, stage.habits.expandable_segments),
        hidden_(device_.request(stage.hidden)),
        live_(stage.kind_of.size()) {
    for (const UnitTensors& kind : stage.kinds) kinds_.emplace_back(kind, stage.workspace, device_);
    for (std::vector<Live>& of_chunk : live_) of_chunk.resize(static_cast<std::size_t>(stage.microbatches));
    for (const std::vector<std::size_t>& kinds : stage.kind_of) {
      std::size_t tensors = 0;
      for (const std::size_t kind : kinds) tensors += kinds_[kind].tensors;
      tensors_of_.push_back(tensors);
    }
    if (stage.torch()) weights_ = rank_weights(stage, own, device_);
  }

  AllocatorPeaks run() {
    try {
      build();
      for (int step = 0; step < steps; ++step) {
        run_rounds();
        device_.catch_up();  // the loss is read
        if (weights_) {
          weights_->update(step == 0);
        } else if (step == 0) {
          moments();
        }
      }
    } catch (const OutOfMemory&) {
    }
    return device_.peaks();
  }

 private:
  using Live = std::vector<Block*>;  // of a micro-batch and chunk: the tensors of its units, one unit after the other

  // Weights; with the distributed optimizer they then move into one buffer. Gradients are one buffer, master weights a tensor each.
  void build() {
    if (weights_) {
      weights_->build();
      return;
    }
    if (stage_.by_tensor()) {
      build_by_tensor();
      return;
    }
    const workloads::Precision& precision = stage_.workload.precision;
    const double weight = bytes_of(precision.weights), state = bytes_of(precision.optimizer);
    double all = 0;
    std::vector<Block*> weights;
    for (const double size : stage_.parameters) {
      weights.push_back(device_.take(size * weight));
      all += size;
    }
    const bool distributed = stage_.workload.optimizer.zero_stage > 0;
    if (distributed) device_.take(all * weight);
    device_.take(all * bytes_of(precision.gradients));
    if (distributed) std::ranges::for_each(weights, [this](Block*& block) { device_.give(block); });
    if (weight >= state) return;
    for (const double size : own_) {
      Block* copy = device_.take(size * weight);
      device_.take(size * state);
      device_.give(copy);
    }
  }

  // nanotron, whose ranks all shard every tensor alike: weights, one buffer of gradients, master weights; with ZeRO-1 the shard's gradients
  // in both types, otherwise, where there are replicas, DDP's buckets.
  void build_by_tensor() {
    const workloads::Precision& precision = stage_.workload.precision;
    const double weight = bytes_of(precision.weights), state = bytes_of(precision.optimizer);
    double all = 0;
    for (const double size : stage_.parameters) {
      device_.take(size * weight);
      all += size;
    }
    device_.take(all * bytes_of(precision.gradients));
    for (const double size : stage_.parameters) device_.take(size * state);
    const bool sharded = stage_.workload.optimizer.zero_stage > 0;
    if (!sharded && stage_.workload.parallel.dp == 1) return;
    for (const double size : sharded ? own_ : stage_.parameters) device_.take(size * (weight + (sharded ? state : 0)));
  }

  // At the first update.
  void moments() {
    const double state = bytes_of(stage_.workload.precision.moments);
    for (const double size : own_) {
      device_.take(size * state);
      device_.take(size * state);
    }
  }

  // A round that leaves the allocator as it found it is the same ever after.
  void run_rounds() {
    std::vector<std::uint64_t> before;
    bool changed = true;
    for (const TrainedRound& round : stage_.rounds) {
      if (round.as_before && !changed) continue;
      for (const Slot& slot : round.slots) slot.kind == Slot::Kind::forward ? forward(slot) : backward(slot);
      std::vector<std::uint64_t> after = device_.snapshot();
      after.push_back(units_ % units_ahead);
      changed = before != after;
      before = std::move(after);
    }
  }

  [[nodiscard]] Live& live(const Slot& slot) {
    return live_[static_cast<std::size_t>(slot.chunk)][static_cast<std::size_t>(slot.microbatch)];
  }

  void forward(const Slot& slot) {
    Live& blocks = live(slot);
    blocks.assign(tensors_of_[static_cast<std::size_t>(slot.chunk)], nullptr);
    Block** own = blocks.data();
    Block* hidden = starts(slot.chunk) ? nullptr : device_.take(hidden_);
    std::size_t u = 0;
    for (const std::size_t kind : stage_.kind_of[static_cast<std::size_t>(slot.chunk)]) {
      const UnitActions& unit = kinds_[kind];
      if (weights_) weights_->before_forward(u);
      own[UnitTensors::input] = hidden;
      act(unit.forward, own);
      hidden = std::exchange(own[UnitTensors::output], nullptr);
      own += unit.tensors;
      if (weights_) weights_->after_forward(u++);
    }
    device_.give(cached_);
    device_.give(hidden);  // sent
  }

  void backward(const Slot& slot) {
    Live& blocks = live(slot);
    if (weights_) weights_->begin_backward({slot.microbatch == 0, slot.microbatch + 1 == stage_.microbatches});
    Block* gradient = ends(slot.chunk) ? nullptr : device_.take(hidden_);
    Block** own = blocks.data() + blocks.size();
    const std::vector<std::size_t>& kinds = stage_.kind_of[static_cast<std::size_t>(slot.chunk)];
    for (std::size_t u = kinds.size(); u-- > 0;) {
      const UnitActions& unit = kinds_[kinds[u]];
      own -= unit.tensors;
      if (weights_) weights_->before_backward(u);
      own[UnitTensors::output_gradient] = gradient;
      act(unit.backward, own);
      gradient = std::exchange(own[UnitTensors::input_gradient], nullptr);
      if (weights_) weights_->after_backward(u);
    }
    device_.give(gradient);
    if (weights_) weights_->end_backward();
  }

  // A chunk may be empty: a stage that only passes on.
  [[nodiscard]] bool starts(int chunk) const {
    const auto& units = stage_.program.chunks[static_cast<std::size_t>(chunk)];
    return !units.empty() && units.front().kind == workloads::UnitKind::embedding;
  }
  [[nodiscard]] bool ends(int chunk) const {
    const auto& units = stage_.program.chunks[static_cast<std::size_t>(chunk)];
    return !units.empty() && units.back().kind == workloads::UnitKind::head;
  }

  void act(const std::vector<Action>& actions, Block** blocks) {
    if (++units_ % units_ahead == 0) device_.catch_up();
    for (const Action& action : actions) {
      if (action.kind == TensorStep::Kind::give) {
        device_.give(blocks[action.tensor]);
      } else if (action.kind == TensorStep::Kind::take) {
        blocks[action.tensor] = device_.take(*action.request);
      } else {
        act_for_rank(action, blocks);
      }
    }
  }

  void act_for_rank(const Action& action, Block** blocks) {
    switch (action.kind) {
      case TensorStep::Kind::hold: {
        Block*& held = held_[static_cast<std::size_t>(action.tensor)];
        if (held == nullptr) held = device_.take(*action.request);
        break;
      }
      case TensorStep::Kind::cached:
        cached_.push_back(device_.take(*action.request));
        break;
      case TensorStep::Kind::gradient:
        weights_->take_gradient(device_.take(*action.request), static_cast<double>(action.request->asked));
        break;
      default:
        blocks[action.name] = std::exchange(blocks[action.tensor], nullptr);
    }
  }

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  Device device_;
  Device::Request hidden_;
  std::vector<UnitActions> kinds_;
  std::vector<std::size_t> tensors_of_;  // [chunk]
  unsigned units_ = 0;
  std::vector<std::vector<Live>> live_;  // [chunk][micro-batch]
  std::array<Block*, TensorStep::most_held> held_{};
  std::vector<Block*> cached_;            // by autocast, of this forward
  std::unique_ptr<RankWeights> weights_;  // of PyTorch's own modules
};

bool alike(const TrainedRound& a, const TrainedRound& b) {
  const int later = b.slots.front().microbatch - a.slots.front().microbatch;
  return std::ranges::equal(a.slots, b.slots, [&](const Slot& x, const Slot& y) {
    return x.kind == y.kind && x.chunk == y.chunk && x.microbatch + later == y.microbatch;
  });
}

std::vector<TrainedRound> rounds_of(const std::vector<Slot>& order) {
  std::vector<TrainedRound> rounds(1);
  int live = 0;
  for (const Slot& slot : order) {
    if (live == 0 && !rounds.back().slots.empty()) rounds.emplace_back();
    rounds.back().slots.push_back(slot);
    live += slot.kind == Slot::Kind::forward ? 1 : -1;
  }
  for (std::size_t r = 1; r < rounds.size(); ++r) rounds[r].as_before = alike(rounds[r - 1], rounds[r]);
  return rounds;
}

}  // namespace

TrainedStage::TrainedStage(const workloads::Workload& of, const workloads::MemoryHabits& habits_of, int stage,
                           const workloads::StageProgram& its, double workspace_bytes)
    : workload(of), habits(habits_of), program(its), workspace(workspace_bytes) {
  const workloads::Unit* last = nullptr;
  for (const auto& chunk : program.chunks) {
    auto& kinds_of_chunk = kind_of.emplace_back();
    for (const workloads::Unit& unit : chunk) {
      if (last == nullptr || unit.kind != last->kind || unit.recomputed != last->recomputed) {
        kinds.push_back(tensors_of(workload, habits, unit));
        kind_parameters.push_back(parameters_of(workload, unit));
      }
      last = &unit;
      kinds_of_chunk.push_back(kinds.size() - 1);
      const std::vector<double>& sizes = kind_parameters.back();
      parameters.insert(parameters.end(), sizes.begin(), sizes.end());
    }
  }
  workloads::PipelineShape shape = workloads::pipeline_shape(workload);
  microbatches = shape.microbatches = std::min(shape.microbatches, 2 * shape.stages);
  rounds = rounds_of(workloads::ScheduleRegistry::get(workload.schedule).order(shape, stage));
  const workloads::Shard shard = workloads::shard_of(workload);
  hidden = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
}

// The buffer holds parameters in the order of their gradients, last ones first; the rank has one piece of it. nanotron's ranks have a piece
// of each tensor.
std::vector<double> parameters_of_shard(const TrainedStage& stage, int shard, int shards) {
  if (stage.by_tensor()) {
    std::vector<double> own = stage.parameters;
    for (double& size : own) size /= shards;
    return own;
  }
  double all = 0;
  for (const double size : stage.parameters) all += size;
  const double from = all / shards * shard, to = all / shards * (shard + 1);
  std::vector<double> own;
  double at = 0;
  for (std::size_t i = stage.parameters.size(); i-- > 0;) {
    const double size = stage.parameters[i];
    const double part = std::min(at + size, to) - std::max(at, from);
    if (part >= 1) own.push_back(part);
    at += size;
  }
  return own;
}

AllocatorPeaks trained(const TrainedStage& stage, const std::vector<double>& own_parameters, double device_bytes) {
  return Training(stage, own_parameters, device_bytes).run();
}

}  // namespace rehearse::sim
