#include "workloads/operators/wire.hpp"

#include "workloads/expert_layer.hpp"

namespace rehearse::workloads {
namespace {

constexpr std::string_view copies_for_wire = "wire_copies";

// torch.nn.functional.pad fills all of a wider tensor and copies rows into it (0.5 and 1 reads and writes), and a contiguous copy takes
// them out of what has arrived (1): _pad and _slice in Halo's src/distributed/expert_parallel/dispatcher.py (whitecircle/halo).
constexpr double copies = 2.5;

bool is_of_sending(const Item& item) {
  const auto* op = std::get_if<Operator>(&item);
  return op != nullptr && (op->name == copies_for_wire || op->name == routing_scan_name);
}

}  // namespace

std::int64_t sent_width(const Workload& workload) {
  const std::int64_t width = workload.model.routed_width(), multiple = workload.fusions.wire_multiple;
  if (workload.experts.dispatcher != Dispatcher::hierarchical || workload.parallel.ep == 1) return width;
  return (width + multiple - 1) / multiple * multiple;
}

bool dispatches_by_masks(const Workload& workload) {
  const ExpertPlan& plan = workload.experts;
  const bool filled = plan.pad_to == ExpertPlan::to_capacity && plan.dispatcher == Dispatcher::alltoall;
  return filled && workload.fusions.grouped_kernel == GroupedKernel::megablox;
}

Section wire_copies(const Workload& workload, const Shard& shard, double rows) {
  if (sent_width(workload) == shard.hidden) return {};
  const double bytes = copies * 2 * rows * static_cast<double>(shard.hidden) * shard.element;
  return pointwise(
      std::string(copies_for_wire),
      {.forward_bytes = bytes, .backward_bytes = bytes, .eager = !workload.fusions.compiled || workload.fusions.eager_experts});
}

void drop_sending(const Workload& workload, std::vector<Item>& recomputed) {
  if (replays_dispatch(workload)) std::erase_if(recomputed, is_of_sending);
}

}  // namespace rehearse::workloads
