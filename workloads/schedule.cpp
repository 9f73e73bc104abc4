#include "workloads/schedule.hpp"

#include <algorithm>

namespace rehearse::workloads {
namespace {

std::optional<Location> beside(const Schedule& schedule, const PipelineShape& shape, int stage, const Slot& slot, int step) {
  if (slot.kind == Slot::Kind::backward_weight) return std::nullopt;
  const int own = schedule.position(shape, slot.microbatch, {stage, slot.chunk});
  const int other = own + (slot.kind == Slot::Kind::forward ? step : -step);
  if (own < 0 || other < 0 || other >= schedule.depth(shape)) return std::nullopt;
  const Location there = schedule.location(shape, slot.microbatch, other);
  if (there.stage == stage) return std::nullopt;
  return there;
}

}  // namespace

std::vector<Slot> slots_of(const Workload& workload, int stage) {
  const Schedule& schedule = ScheduleRegistry::get(workload.schedule);
  const PipelineShape shape = pipeline_shape(workload);
  std::vector<Slot> alone = schedule.order(shape, stage);
  if (!workload.overlap.ep || schedule.splits_backward()) return alone;
  std::vector<Slot> forwards, backwards, slots;
  for (const Slot& slot : alone) (slot.kind == Slot::Kind::forward ? forwards : backwards).push_back(slot);
  const auto first = std::min(forwards.size(), static_cast<std::size_t>(schedule.forwards_before_pairs(shape, stage)));
  slots.assign(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (first + i < forwards.size()) {
      slots.push_back(forwards[first + i]);
      slots.back().paired = true;
    }
    slots.push_back(backwards[i]);
  }
  return slots;
}

PipelineShape pipeline_shape(const Workload& workload) {
  const bool mirrors = ScheduleRegistry::get(workload.schedule).mirrors();
  return {workload.parallel.pp, (mirrors ? 2 : 1) * workload.parallel.vpp, workload.microbatches()};
}

std::optional<Location> source_of(const Schedule& schedule, const PipelineShape& shape, int stage, const Slot& slot) {
  return beside(schedule, shape, stage, slot, -1);
}

std::optional<Location> target_of(const Schedule& schedule, const PipelineShape& shape, int stage, const Slot& slot) {
  return beside(schedule, shape, stage, slot, 1);
}

StageWays::StageWays(const Schedule& schedule, const PipelineShape& shape, int stage)
    : schedule_(schedule), shape_(shape), stage_(stage), same_for_all_(!schedule.mirrors()) {
  using enum Slot::Kind;
  for (int chunk = 0; same_for_all_ && chunk < shape.chunks; ++chunk) {
    for (const Slot::Kind kind : {forward, backward, backward_input, backward_weight}) {
      const Slot slot{kind, 0, chunk};
      known_.push_back({source_of(schedule, shape, stage, slot), target_of(schedule, shape, stage, slot)});
    }
  }
}

}  // namespace rehearse::workloads
