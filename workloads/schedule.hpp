// Where a pipeline's model chunks lie and the order in which a pipeline stage works on its micro-batches. One .cpp per schedule in
// workloads/schedules/, registered by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "workloads/plan.hpp"

namespace rehearse::workloads {

struct PipelineShape {
  int stages = 1;        // p
  int chunks = 1;        // v, model chunks (virtual stages) per GPU; 2 when the schedule mirrors
  int microbatches = 1;  // m
};

struct Slot {
  enum class Kind : std::uint8_t { forward, backward, backward_input, backward_weight };  // backward: both gradients together
  Kind kind = Kind::forward;
  int microbatch = 0;
  int chunk = 0;
  bool paired = false;  // with the slot after it: both start when both have their input, and send when both have ended

  static constexpr std::size_t kinds = 4;
  // Among the kinds of all chunks.
  [[nodiscard]] std::size_t place() const { return kinds * static_cast<std::size_t>(chunk) + static_cast<std::size_t>(kind); }
};

struct Location {
  int stage = 0, chunk = 0;
};

class Schedule {
 public:
  static constexpr std::string_view kind = "schedule";
  virtual ~Schedule() = default;

  // Why this shape cannot be scheduled ("interleaved-1f1b needs vpp >= 2"), or "" when it can.
  [[nodiscard]] virtual std::string refusal(const PipelineShape& shape) const = 0;

  // How many model chunks a micro-batch passes, and where it meets each of them: `position` counts from the embedding on. All of them the
  // same way, but where the schedule mirrors.
  [[nodiscard]] virtual int depth(const PipelineShape& shape) const { return shape.stages * shape.chunks; }
  [[nodiscard]] virtual Location location(const PipelineShape& shape, int /*microbatch*/, int position) const {
    return {position % shape.stages, position / shape.stages};
  }
  // The inverse; -1 when the micro-batch never comes there.
  [[nodiscard]] virtual int position(const PipelineShape& shape, int /*microbatch*/, const Location& at) const {
    return at.chunk * shape.stages + at.stage;
  }

  // Whether stages i and p-1-i hold the same layers, once for each direction, so that replicas are twice as many (DualPipe).
  [[nodiscard]] virtual bool mirrors() const { return false; }

  // All slots of a stage in execution order: every (micro-batch, chunk) that has a position once forward and once backward (or once for
  // each gradient).
  [[nodiscard]] virtual std::vector<Slot> order(const PipelineShape& shape, int stage) const = 0;

  // Model chunks whose activations stage holds at its peak (equation 5).
  [[nodiscard]] virtual int peak_in_flight(const PipelineShape& shape, int stage) const = 0;

  // Whether backward comes in two slots, input gradient and weight gradient (zero-bubble schedules), instead of one.
  [[nodiscard]] virtual bool splits_backward() const { return false; }

  // Whether a stage starts its next step as soon as it has ended this one, without waiting for the others (zero-bubble schedules validate
  // the optimizer step afterwards). A step then lasts as long as the longest stage, from its own start to its own end.
  [[nodiscard]] virtual bool staggers_steps() const { return false; }

  // Number of forward slots before the first backward one on a stage (including the one of the first 1F1B pair).
  [[nodiscard]] virtual int warmup_forwards(const PipelineShape& shape, int stage) const = 0;

  // Micro-batches that a stage passes through one model chunk before the next chunk has its turn.
  [[nodiscard]] virtual int turn(const PipelineShape& /*shape*/) const { return 1; }

  // Whether a forward can run beside a backward of another micro-batch, so that overlap.ep has a meaning. Where backward is split the pairs
  // are in order(); else slots_of() makes them, after so many forwards on a stage.
  [[nodiscard]] virtual bool runs_pairs() const { return false; }
  [[nodiscard]] virtual int forwards_before_pairs(const PipelineShape& shape, int stage) const { return warmup_forwards(shape, stage) + 1; }
};

using ScheduleRegistry = config::Registry<Schedule>;

// Of a job that names none, with so many model chunks per GPU.
[[nodiscard]] inline std::string_view usual_schedule(int vpp) { return vpp > 1 ? "interleaved-1f1b" : "1f1b"; }

// The shape of a job's pipeline.
[[nodiscard]] PipelineShape pipeline_shape(const Workload& workload);

// The slots of a stage as a job runs them. With overlap.ep the schedules that run one slot at a time run forwards and backwards in pairs
// instead, of different micro-batches.
[[nodiscard]] std::vector<Slot> slots_of(const Workload& workload, int stage);

// Where a forward or backward slot of a stage gets its input from, or sends its output to; nothing at the model's ends, for weight
// gradients and when that is the stage itself.
[[nodiscard]] std::optional<Location> source_of(const Schedule& schedule, const PipelineShape& shape, int stage, const Slot& slot);
[[nodiscard]] std::optional<Location> target_of(const Schedule& schedule, const PipelineShape& shape, int stage, const Slot& slot);

// The two for one slot of a stage after another.
class StageWays {
 public:
  struct Way {
    std::optional<Location> source, target;
  };
  // Must outlive it.
  StageWays(const Schedule& schedule, const PipelineShape& shape, int stage);
  [[nodiscard]] Way of(const Slot& slot) const {
    return same_for_all_ ? known_[slot.place()]
                         : Way{source_of(schedule_, shape_, stage_, slot), target_of(schedule_, shape_, stage_, slot)};
  }

 private:
  const Schedule& schedule_;
  const PipelineShape shape_;
  int stage_;
  bool same_for_all_;       // micro-batches
  std::vector<Way> known_;  // [chunk][Slot::Kind] then
};

}  // namespace rehearse::workloads
