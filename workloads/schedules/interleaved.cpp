// Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM): each GPU holds v model chunks and works on micro-batches in groups of p, chunk by
// chunk.
#include <algorithm>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

// The i-th forward slot of any stage; backward slots walk the chunks the other way round.
Slot nth(const PipelineShape& shape, int i, Slot::Kind kind) {
  const int group = shape.stages * shape.chunks;
  const int within = i % group;
  const int chunk = within / shape.stages;
  const int microbatch = i / group * shape.stages + within % shape.stages;
  return {kind, microbatch, kind == Slot::Kind::forward ? chunk : shape.chunks - 1 - chunk};
}

class Interleaved final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    if (shape.stages < 2) return "interleaved-1f1b needs pp >= 2";
    if (shape.chunks < 2) return "interleaved-1f1b needs vpp >= 2; use 1f1b with vpp 1";
    if (shape.microbatches % shape.stages != 0) {
      return "interleaved-1f1b needs the micro-batches per replica (" + std::to_string(shape.microbatches) + ") to be a multiple of pp (" +
             std::to_string(shape.stages) + ")";
    }
    return "";
  }
  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    const int total = shape.microbatches * shape.chunks;
    const int warmup = warmup_forwards(shape, stage);
    std::vector<Slot> slots;
    slots.reserve(2 * static_cast<std::size_t>(total));
    for (int i = 0; i < warmup; ++i) slots.push_back(nth(shape, i, Slot::Kind::forward));
    for (int i = 0; i < total; ++i) {
      slots.push_back(nth(shape, i, Slot::Kind::backward));
      if (i + warmup < total) slots.push_back(nth(shape, i + warmup, Slot::Kind::forward));
    }
    return slots;
  }
  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int stage) const override { return warmup_forwards(shape, stage); }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int stage) const override {
    return std::min(shape.microbatches * shape.chunks, 2 * (shape.stages - stage - 1) + (shape.chunks - 1) * shape.stages + 1);
  }
  [[nodiscard]] int turn(const PipelineShape& shape) const override { return std::min(shape.stages, shape.microbatches); }
  [[nodiscard]] bool runs_pairs() const override { return true; }
};

const ScheduleRegistry::Registration<Interleaved> interleaved_registration("interleaved-1f1b");

}  // namespace
}  // namespace rehearse::workloads
