// Device memory that the training stack holds beside tensors.
#pragma once

#include "sim/job/job.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// What is held all the time: static tensors, context and communicators.
[[nodiscard]] MemoryBytes held_all_the_time(const Job& job, const workloads::StaticMemory& tensors);
[[nodiscard]] MemoryBytes held_all_the_time(double framework_bytes, const workloads::StaticMemory& tensors);
// Context and communicators, the same for every rank.
[[nodiscard]] double framework_bytes(const System& system, const workloads::Workload& workload);

// Raises `memory` to what is there while the optimizer works, where it takes more than its states and gradients. always:
// held_all_the_time().
void raise_to_update(const MemoryBytes& always, const workloads::StaticMemory& tensors, RankMemory& memory);

// Of the GPU's memory, without what its driver keeps for itself.
[[nodiscard]] double usable_bytes(const Gpu& gpu);

// Fills in what the allocator keeps beyond the tensors' peak. update_bytes: StaticMemory::update, whose large tensors have segments of
// their own, which nothing else fills and which are given back when memory runs short.
void add_cache(const Job& job, double update_bytes, RankMemory& memory);
void add_cache(const MemoryOverhead& stack, double update_bytes, RankMemory& memory);

// Ranks of one stage keep equally much.
[[nodiscard]] HostMemory fullest_host(const Job& job, const std::vector<RankMemory>& ranks);

}  // namespace rehearse::sim
