// What the files that read a stack's keys share.
#pragma once

#include "config/keys.hpp"
#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

constexpr int most_kernels = 10'000;

// Of flash attention, by generation.
[[nodiscard]] const config::Names<int>& flash_kernels();

// Of products of all experts at once.
[[nodiscard]] const config::Names<workloads::GroupedKernel>& grouped_kernels();

// That send tokens to their experts.
[[nodiscard]] const config::Names<workloads::DispatchKernels>& dispatch_kernels();

[[nodiscard]] const config::Keys<workloads::PassKernels>& pass_keys();

// `memory` of a stack's file.
[[nodiscard]] const config::Keys<MemoryOverhead>& memory_keys();

// node: the stack's file. Refuses a host that runs ahead by a queue (`host_ahead`) of which no launches are told.
void require_launches(const config::Node& node, const workloads::MemoryHabits& habits);

}  // namespace rehearse::sim
