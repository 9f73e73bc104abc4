// What the ranks of a plan hold whatever their turns do, and what that leaves open of the memory that they need.
#pragma once

#include "sim/result.hpp"
#include "sim/system.hpp"
#include "workloads/stage_program.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::sim {

// Of the GPU's memory, without what its driver keeps for itself.
[[nodiscard]] double usable_bytes(const Gpu& gpu);
// Context and communicators, the same for every rank.
[[nodiscard]] double framework_bytes(const System& system, const workloads::Workload& workload);

// A rank of one pipeline stage. The system must outlive it.
class RankAtRest {
 public:
  RankAtRest(const System& system, double framework_bytes, const workloads::StaticMemory& tensors);

  [[nodiscard]] const workloads::StaticMemory& tensors() const { return tensors_; }
  // Held all the time: static tensors, context and communicators.
  [[nodiscard]] const MemoryBytes& always() const { return always_; }
  // A rank that holds nothing else, on its GPU.
  [[nodiscard]] RankMemory rank() const;
  // Raises a rank with the peak of its turns to what is there while the optimizer works, where that takes more than its states and
  // gradients.
  void raise_to_update(RankMemory& memory) const;
  // Fills in what the allocator keeps beyond the tensors' peak. The update's large tensors have segments of their own, which nothing else
  // fills and which are given back when memory runs short.
  void add_cache(RankMemory& memory) const;

 private:
  const System& system_;
  workloads::StaticMemory tensors_;
  MemoryBytes always_;
};

// Those of all stages. All must outlive it.
class RanksAtRest {
 public:
  // standing: workloads::standing_bytes().
  RanksAtRest(const System& system, const workloads::Workload& workload, const workloads::ReplicaSync& sync, double standing);
  RanksAtRest(const System& system, const workloads::Workload& workload, const workloads::ReplicaSync& sync);

  // parameters: of the stage, before ZeRO.
  [[nodiscard]] RankAtRest of(const workloads::Parameters& parameters) const;

 private:
  const System& system_;
  const workloads::Workload& workload_;
  const workloads::ReplicaSync& sync_;
  double standing_, framework_bytes_;
};

}  // namespace rehearse::sim
