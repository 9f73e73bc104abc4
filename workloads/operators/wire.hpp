// States of tokens as kernels that dispatch tokens themselves send them: in whole multiples of so many elements (wire_multiple of a stack).
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
// Without those copies, and without working out where tokens go (routing_scan), where recomputation sends nothing.
void drop_sending(const Workload& workload, std::vector<Item>& recomputed);

}  // namespace rehearse::workloads
