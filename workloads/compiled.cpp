#include "workloads/compiled.hpp"

namespace rehearse::workloads {

Compiled compile(const Workload& workload, Cut cut) {
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
