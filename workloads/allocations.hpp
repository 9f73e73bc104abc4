// When each operation of a step graph takes and gives back device memory, in program order. Plain data, without time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/compiled.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/memory_use.hpp"
#include "workloads/step_graph.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

struct Allocation {
  OpId op = 0;
  bool at_end = false;     // of the operation, else at its start
  std::uint32_t turn = 0;  // what comes first where one operation works on several units: they take and give back one after another
  MemoryUse use = MemoryUse::activations;
  double bytes = 0;  // negative: given back
};

// In program order; of one operation at its start first, then by turns, and what is given back before what is taken.
struct RankAllocations {
  StaticMemory held;               // all the time
  std::vector<Allocation> events;  // add up to nothing in each use
  std::vector<Allocation> host;    // the same of the host's memory, activations only
};

// Of a step graph that was built rank by rank, from the workload compiled with whatever cut: HeldMemory's intervals at the operations of
// their tasks. `step` is that of the routing.
class StepAllocations {
 public:
  // All must outlive it.
  StepAllocations(const Workload& workload, const Compiled& compiled, const MemoryHabits& habits, const StepGraph& graph, int step = 0);
  [[nodiscard]] RankAllocations of(std::size_t simulated_rank);

 private:
  [[nodiscard]] RankAllocations make(const RankBlock& block);

  const Workload& workload_;
  const Compiled& compiled_;
  const MemoryHabits& habits_;
  const StepGraph& graph_;
  std::optional<ExpertLoads> loads_;
  struct Program;
  std::map<std::uint32_t, std::shared_ptr<const Program>> programs_;
  std::map<std::uint32_t, RankAllocations> made_;  // [program] of ranks that all hold the same, places for operations
};

}  // namespace rehearse::workloads
