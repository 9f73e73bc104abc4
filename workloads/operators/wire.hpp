// States of tokens as kernels that dispatch tokens themselves send them: in whole multiples of so many elements (wire_multiple of a stack).
#pragma once

#include <cstdint>

#include "workloads/operators/section.hpp"

namespace rehearse::workloads {

// Elements of a token's state on its way to experts and back.
[[nodiscard]] std::int64_t sent_width(const Workload& workload);
// What copies so many rows of experts' states into wider ones before a call and as many out of them behind another; nothing where no row is
// wider than a state.
[[nodiscard]] Section wire_copies(const Workload& workload, const Shard& shard, double rows);
// Without those copies where recomputation sends nothing.
void drop_wire_copies(const Workload& workload, std::vector<Item>& recomputed);

}  // namespace rehearse::workloads
