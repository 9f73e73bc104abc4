#include "sim/analytic/workspace.hpp"

namespace rehearse::sim {

const SlotOrder& Workspace::slot_order(const workloads::Workload& workload, const workloads::Compiled& compiled) {
  const Shape shape{compiled.schedule, compiled.shape.stages, compiled.shape.chunks, workload.microbatches(), workload.overlap.ep};
  std::unique_ptr<SlotOrder>& known = slot_orders_[shape];
  if (known) return *known;
  const int over = workload.microbatches() % compiled.shape.stages;
  const SlotOrder*& repeated = repeated_[{compiled.schedule, compiled.shape.stages, compiled.shape.chunks, over, workload.overlap.ep}];
  const auto shared = repeated != nullptr ? repeated->with_microbatches(workload.microbatches()) : std::nullopt;
  known = std::make_unique<SlotOrder>(shared ? *shared : SlotOrder(workload));
  if (!shared) steps_held_ += known->steps();
  if (known->rounds() > 1) repeated = known.get();
  return *known;
}

const PipelineFormula& Workspace::formula(const workloads::Workload& workload, const workloads::Compiled& compiled) {
  const PipelineFormula*& known = formulas_[compiled.schedule];
  if (known == nullptr) known = &PipelineFormulaRegistry::get(workload.schedule);
  return *known;
}

}  // namespace rehearse::sim
