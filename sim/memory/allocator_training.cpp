#include "sim/memory/allocator_training.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "sim/memory/allocator_device.hpp"
#include "sim/memory/host_lead.hpp"
#include "sim/memory/rank_weights.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using Device = AllocatorDevice;
using Block = Device::Block;

constexpr int steps = 3;  // the first has no moments yet, and what the second takes beside them the third may split differently

// A unit's steps as its device is asked for them; those that take nothing are left out.
struct Action {
  TensorStep::Kind kind;
  int tensor, name;
  Device::Request request;             // of what is not given back
  const TensorStep* varies = nullptr;  // take: by the pairs of the micro-batch
};

bool is_recorded(const TensorStep& step, workloads::Recorded recorded) {
  using workloads::Recorded;
  return step.communicated && recorded != Recorded::none && !(step.waited && recorded == Recorded::beside);
}

Device::Request request_of(const TensorStep& step, double bytes, workloads::Recorded recorded, Device& device) {
  if (step.aside) return device.request(bytes, gather_stream, compute_as_user);
  return device.request(bytes, compute_stream, is_recorded(step, recorded) ? nccl_stream : compute_stream);
}

struct UnitActions {
  UnitActions(const UnitTensors& unit, const TrainedStage& stage, double pairs, Device& device)
      : forward(actions(unit.forward, stage, pairs, device)),
        backward(actions(unit.backward, stage, pairs, device)),
        tensors(static_cast<std::size_t>(unit.tensors)),
        again(unit.again) {}

  std::vector<Action> forward, backward;
  std::size_t tensors;
  bool again;

 private:
  static std::vector<Action> actions(const std::vector<TensorStep>& steps, const TrainedStage& stage, double pairs, Device& device) {
    std::vector<Action> made;
    made.reserve(steps.size());
    for (const TensorStep& step : steps) {
      const double bytes = step.bytes == TensorStep::workspace          ? stage.workspaces.torch
                           : step.bytes == TensorStep::engine_workspace ? stage.workspaces.engine
                                                                        : step.bytes + pairs * step.per_pair;
      const Device::Request request = request_of(step, bytes, stage.habits.recorded, device);
      const bool takes_none =
          step.kind == TensorStep::Kind::give || step.kind == TensorStep::Kind::pass_on || step.kind == TensorStep::Kind::wait;
      const bool each = stage.uneven() && step.per_pair > 0;
      if (request || takes_none || each) made.push_back({step.kind, step.tensor, step.name, request, each ? &step : nullptr});
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
        lead_(device_, stage.host_ahead(), stage.habits.launches),
        hidden_(device_.request(stage.hidden)),
        live_(stage.kind_of.size()) {
    for (std::size_t kind = 0; kind < stage.kinds.size(); ++kind)
      kinds_.emplace_back(stage.kinds[kind], stage, stage.kind_pairs[kind], device_);
    for (std::vector<Live>& of_chunk : live_) of_chunk.resize(static_cast<std::size_t>(stage.microbatches));
    for (const std::vector<std::size_t>& kinds : stage.kind_of) {
      std::size_t tensors = 0;
      for (const std::size_t kind : kinds) tensors += kinds_[kind].tensors;
      tensors_of_.push_back(tensors);
    }
    if (stage.makes_each_gradient()) weights_ = rank_weights(stage, own, device_);
  }

  AllocatorPeaks run() {
    try {
      build();
      for (int step = 0; step < steps; ++step) {
        const std::uint64_t taken = device_.allocator().taken(), retries = device_.allocator().retries();
        run_rounds();
        lead_.catch_up();  // the loss is read
        end_passes();
        if (weights_) {
          weights_->update(step == 0);
        } else if (step == 0) {
          moments();
        }
        const bool short_of = device_.allocator().retries() > retries;
        retaken_ = short_of ? of_all_microbatches(device_.allocator().taken() - taken) : 0;
      }
    } catch (const OutOfMemory&) {
    }
    return peaks_of_all();
  }

 private:
  // Peaks are counted anew behind every backward.
  void end_passes() {
    const AllocatorPeaks peaks = device_.peaks();
    before_.allocated = std::max(before_.allocated, peaks.allocated);
    before_.reserved = std::max(before_.reserved, peaks.reserved);
    device_.reset_peaks();
  }

  [[nodiscard]] AllocatorPeaks peaks_of_all() const {
    AllocatorPeaks peaks = device_.peaks();
    peaks.reserved_by_update = peaks.reserved;
    peaks.allocated = std::max(peaks.allocated, before_.allocated);
    peaks.reserved = std::max(peaks.reserved, before_.reserved);
    peaks.retaken = retaken_;
    return peaks;
  }

  using Live = std::vector<Block*>;  // of a micro-batch and chunk: the tensors of its units, one unit after the other

  // Weights; with the distributed optimizer they then move into one buffer. Gradients are one buffer, master weights a tensor each.
  void build() {
    if (weights_) {
      weights_->build();
      return;
    }
    const workloads::Precision& precision = stage_.workload.precision;
    const double weight = bytes_of(precision.weights), state = workloads::master_bytes_per_parameter(stage_.workload, stage_.habits);
    double all = 0;
    std::vector<Block*> weights;
    for (const double size : stage_.parameters) {
      weights.push_back(device_.take(size * weight));
      all += size;
    }
    double experts = 0;
    std::vector<Block*> expert_weights;
    for (const double size : stage_.expert_parameters) {
      expert_weights.push_back(device_.take(size * weight));
      experts += size;
    }
    const bool distributed = stage_.workload.optimizer.zero_stage > 0;
    const auto lay_out = [&](double parameters, std::vector<Block*>& own) {
      if (distributed) device_.take(parameters * weight);
      device_.take(parameters * bytes_of(precision.gradients));
      if (distributed) device_.give(own);
    };
    lay_out(all, weights);
    lay_out(experts, expert_weights);
    if (state == 0) return;
    for (const double size : own_) {
      Block* copy = device_.take(size * weight);
      device_.take(size * state);
      device_.give(copy);
    }
  }

  // At the first update.
  void moments() {
    const double state = bytes_of(stage_.workload.precision.moments);
    for (const double size : own_) {
      device_.take(size * state);
      device_.take(size * state);
    }
  }

  [[nodiscard]] double of_all_microbatches(std::uint64_t bytes) const {
    return static_cast<double>(bytes) * stage_.workload.microbatches() / stage_.microbatches;
  }

  // A round that leaves the allocator as it found it is the same ever after.
  void run_rounds() {
    std::vector<std::uint64_t> before;
    bool changed = true;
    for (const TrainedRound& round : stage_.rounds) {
      if (round.as_before && !changed) continue;
      lead_.begin_round();
      for (const Slot& slot : round.slots) slot.kind == Slot::Kind::forward ? forward(slot) : backward(slot);
      std::vector<std::uint64_t> after = device_.snapshot();
      lead_.add_to(after);
      changed = before != after;
      before = std::move(after);
    }
  }

  [[nodiscard]] Live& live(const Slot& slot) {
    return live_[static_cast<std::size_t>(slot.chunk)][static_cast<std::size_t>(slot.microbatch)];
  }

  void forward(const Slot& slot) {
    lead_.begin_forward();
    Live& blocks = live(slot);
    blocks.assign(tensors_of_[static_cast<std::size_t>(slot.chunk)], nullptr);
    Block** own = blocks.data();
    const bool arrives = !starts(slot.chunk), leaves = !ends(slot.chunk);
    Block* hidden = arrives ? device_.take(hidden_) : nullptr;
    if (arrives) lead_.pass_message();
    std::size_t u = 0, at = 0;
    for (const std::size_t kind : stage_.kind_of[static_cast<std::size_t>(slot.chunk)]) {
      const UnitActions& unit = kinds_[kind];
      if (weights_) weights_->before_forward(u);
      own[UnitTensors::input] = hidden;
      lead_.begin_forward_unit();
      act(unit.forward, own, pairs(slot, at));
      ++at;
      hidden = std::exchange(own[UnitTensors::output], nullptr);
      own += unit.tensors;
      if (weights_) weights_->after_forward(u++);
    }
    device_.give(cached_);
    if (leaves) lead_.pass_message();
    device_.give(hidden);
  }

  void backward(const Slot& slot) {
    lead_.begin_backward();
    Live& blocks = live(slot);
    if (weights_) weights_->begin_backward({slot.microbatch == 0, slot.microbatch + 1 == stage_.microbatches});
    const bool arrives = !ends(slot.chunk), leaves = !starts(slot.chunk);
    Block* gradient = arrives ? device_.take(hidden_) : nullptr;
    if (arrives) lead_.pass_message();
    Block** own = blocks.data() + blocks.size();
    const std::vector<std::size_t>& kinds = stage_.kind_of[static_cast<std::size_t>(slot.chunk)];
    for (std::size_t u = kinds.size(); u-- > 0;) {
      const UnitActions& unit = kinds_[kinds[u]];
      own -= unit.tensors;
      if (weights_) weights_->before_backward(u);
      own[UnitTensors::output_gradient] = gradient;
      lead_.begin_backward_unit(unit.again);
      act(unit.backward, own, pairs(slot, u));
      gradient = std::exchange(own[UnitTensors::input_gradient], nullptr);
      if (weights_) weights_->after_backward(u);
    }
    if (leaves) lead_.pass_message();
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

  [[nodiscard]] double pairs(const Slot& slot, std::size_t unit) const {
    if (!stage_.uneven()) return 0;
    return stage_.pairs[static_cast<std::size_t>(slot.microbatch)][static_cast<std::size_t>(slot.chunk)][unit];
  }

  // pairs: of what varies.
  void act(const std::vector<Action>& actions, Block** blocks, double pairs) {
    for (const Action& action : actions) {
      if (action.kind == TensorStep::Kind::give) {
        device_.give(blocks[action.tensor]);
      } else if (action.kind == TensorStep::Kind::take) {
        const TensorStep* step = action.varies;
        blocks[action.tensor] =
            step == nullptr ? device_.take(*action.request)
                            : device_.take(request_of(*step, step->bytes + pairs * step->per_pair, stage_.habits.recorded, device_));
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
      case TensorStep::Kind::wait:
        lead_.catch_up();
        break;
      default:
        blocks[action.name] = std::exchange(blocks[action.tensor], nullptr);
    }
  }

  const TrainedStage& stage_;
  const std::vector<double>& own_;
  Device device_;
  HostLead lead_;
  Device::Request hidden_;
  std::vector<UnitActions> kinds_;
  std::vector<std::size_t> tensors_of_;  // [chunk]
  std::vector<std::vector<Live>> live_;  // [chunk][micro-batch]
  std::array<Block*, TensorStep::most_held> held_{};
  std::vector<Block*> cached_;            // by autocast, of this forward
  double retaken_ = 0;                    // in the last step
  AllocatorPeaks before_;                 // up to the end of the last backward
  std::unique_ptr<RankWeights> weights_;  // where autograd makes a gradient of each tensor
};

}  // namespace

AllocatorPeaks trained(const TrainedStage& stage, const std::vector<double>& own_parameters, double device_bytes) {
  return Training(stage, own_parameters, device_bytes).run();
}

}  // namespace rehearse::sim
