// States of tokens as they are sent to experts: by kernels that dispatch tokens themselves in whole multiples of so many elements
// (wire_multiple of a stack), or by products with masks.
#pragma once

#include <cstdint>
#include <string_view>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {

// HybridEP's reading of the map of all routing.
inline constexpr std::string_view routing_scan_name = "routing_scan";
// Elements of a token's state on its way to experts and back.
[[nodiscard]] std::int64_t sent_width(const Workload& workload);
// What copies so many rows of experts' states into wider ones before a call and as many out of them behind another; nothing where no row is
// wider than a state.
[[nodiscard]] Section wire_copies(const Workload& workload, const Shard& shard, double rows);
// Whether tokens come to the slots that experts have for them, and back, by products with masks, which sort by expert: MaxText's other way
// beside Megablox, where experts have a capacity and are filled up to it.
[[nodiscard]] bool dispatches_by_masks(const Workload& workload);
// Without those copies, and without working out where tokens go (routing_scan), where recomputation sends nothing.
void drop_sending(const Workload& workload, std::vector<Item>& recomputed);

}  // namespace rehearse::workloads
