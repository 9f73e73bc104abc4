#include "workloads/schedules/zero_bubble_order.hpp"

#include <algorithm>

namespace rehearse::workloads {

std::vector<Slot> zero_bubble_order(int microbatches, int warmup, int lag) {
  std::vector<Slot> slots;
  slots.reserve(3 * static_cast<std::size_t>(microbatches));
  for (int i = 0; i < warmup; ++i) slots.push_back({Slot::Kind::forward, i, 0});
  for (int i = 0; i < microbatches; ++i) {
    slots.push_back({Slot::Kind::backward_input, i, 0});
    if (i >= lag) slots.push_back({Slot::Kind::backward_weight, i - lag, 0});
    if (i + warmup < microbatches) slots.push_back({Slot::Kind::forward, i + warmup, 0});
  }
  for (int i = std::max(0, microbatches - lag); i < microbatches; ++i) slots.push_back({Slot::Kind::backward_weight, i, 0});
  return slots;
}

std::string zero_bubble_refusal(const char* name, const PipelineShape& shape) {
  return shape.chunks == 1 ? "" : std::string(name) + " has one model chunk per GPU; vpp must be 1";
}

}  // namespace rehearse::workloads
