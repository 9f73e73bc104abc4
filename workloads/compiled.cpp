#include "workloads/compiled.hpp"

#include <stdexcept>

namespace rehearse::workloads {

Compiled compile(const Workload& workload, Cut cut) {
  if (workload.model.moe && workload.experts.chunks == 0 && workload.experts.layer_chunks.empty())
    throw std::logic_error("the chunks of the experts are left to tuning, which comes first (sim::tuned)");
  return {.cut = cut,
          .schedule = &ScheduleRegistry::get(workload.schedule),
          .shape = pipeline_shape(workload),
          .grid = rank_grid(workload),
          .sync = replica_sync(workload),
          .message_bytes = pipeline_message_bytes(workload),
          .tied_bytes = tied_embedding_bytes(workload),
          .stages = stage_programs(workload, cut)};
}

}  // namespace rehearse::workloads
