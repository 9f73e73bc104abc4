#include "workloads/schedule.hpp"

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

}  // namespace rehearse::workloads
