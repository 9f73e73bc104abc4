#include "sim/analytic/offload_cost.hpp"

#include <algorithm>

#include "sim/analytic/overlap.hpp"
#include "workloads/offload.hpp"

namespace rehearse::sim {

OffloadCost offload_cost(const workloads::Workload& w, const StageTerms& terms, const ContentionPair& pair,
                         const workloads::StageProgram& program, int stage) {
  using workloads::Slot;
  const std::size_t chunks = program.chunks.size();
  const std::vector<double> nothing(chunks);
  OffloadCost added{nothing, nothing, nothing, nothing, nothing};
  const workloads::Schedule& schedule = workloads::ScheduleRegistry::get(w.schedule);
  const auto turns = workloads::unit_turns(schedule.order(workloads::pipeline_shape(w), stage), program);
  const workloads::Offloading moves = workloads::offloading(turns, program);
  const auto unit = [&](std::size_t i) -> const UnitTerms& { return *terms.chunks[turns[i].slot.chunk][turns[i].unit]; };
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].slot.microbatch != w.microbatches() / 2) continue;
    const double out = i > 0 && moves.leave[i - 1] ? unit(i - 1).cost->copy_s : 0;
    const double in = i + 1 < turns.size() && moves.come_back[i + 1] ? unit(i + 1).cost->copy_s : 0;
    const auto [slot, index] = turns[i];
    const bool forward = slot.kind == Slot::Kind::forward, weight = slot.kind == Slot::Kind::backward_weight;
    const double own = unit(i).seconds(slot.kind) + unit(i).exposed(slot.kind);
    auto& sum = forward ? added.forward_s : weight ? added.weight_s : added.backward_s;
    const double exposed = overlapped_s(own, std::max(out, in), pair) - own;
    sum[slot.chunk] += exposed;
    const bool last = index == (forward ? static_cast<int>(program.chunks[slot.chunk].size()) - 1 : 0);
    if (last && !weight) (forward ? added.after_forward_s : added.after_backward_s)[slot.chunk] += exposed;
  }
  return added;
}

}  // namespace rehearse::sim
