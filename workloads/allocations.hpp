// When each operation of a step graph takes and gives back device memory, in program order. Plain data, without time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "workloads/compiled.hpp"
#include "workloads/expert_loads.hpp"
#include "workloads/step_graph.hpp"
#include "workloads/unit_memory.hpp"

namespace rehearse::workloads {

enum class MemoryClass : std::uint8_t { weights, gradients, optimizer, activations, temporary, communication };

struct Allocation {
  OpId op = 0;
  bool at_end = false;     // of the operation, else at its start
  std::uint32_t turn = 0;  // what comes first where one operation works on several units: they take and give back one after another
  MemoryClass cls = MemoryClass::activations;
  double bytes = 0;  // negative: given back
};

struct RankAllocations {
  StaticMemory held;               // all the time
  std::vector<Allocation> events;  // add up to nothing in each class
  std::vector<Allocation> host;    // the same of the host's memory, activations only
};

// Of a step graph that was built rank by rank, from the workload compiled with whatever cut.
//
// A unit's activations live from the start of its forward to the end of its last backward; those that are offloaded only until the
// program waits for their copy out, and again from the start of their copy in. The host holds them from the start of their copy out until
// their backward begins. With ZeRO-3 its weights are gathered while it runs, and already while the unit before it runs when
// overlap.dp_parameters is on; gradients that are reduced after every micro-batch live while its backward runs, and while the next unit
// runs when overlap.dp_gradients is on. `step` is that of the routing. A message between stages has a buffer while the slot before the one
// that uses it runs, when overlap.pp is on; without it the buffer becomes the input at once.
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
  struct Tasks;
  std::map<std::uint32_t, std::shared_ptr<const Tasks>> tasks_;  // [program]
  std::map<std::uint32_t, RankAllocations> made_;                // [program] of ranks that all hold the same, places for operations
};

}  // namespace rehearse::workloads
