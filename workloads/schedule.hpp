// The order in which a pipeline stage works on its micro-batches. One .cpp per schedule in workloads/schedules/, registered by name.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "config/registry.hpp"

namespace rehearse::workloads {

struct PipelineShape {
  int stages = 1;        // p
  int chunks = 1;        // v, model chunks (virtual stages) per GPU
  int microbatches = 1;  // m
};

struct Slot {
  enum class Kind : std::uint8_t { forward, backward, backward_input, backward_weight };  // backward: both gradients together
  Kind kind = Kind::forward;
  int microbatch = 0;
  int chunk = 0;
};

class Schedule {
 public:
  static constexpr std::string_view kind = "schedule";
  virtual ~Schedule() = default;

  // Why this shape cannot be scheduled ("interleaved-1f1b needs vpp >= 2"), or "" when it can.
  [[nodiscard]] virtual std::string refusal(const PipelineShape& shape) const = 0;

  // All slots of a stage in execution order: every (micro-batch, chunk) once forward and once backward (or once for each
  // gradient).
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
};

using ScheduleRegistry = config::Registry<Schedule>;

}  // namespace rehearse::workloads
