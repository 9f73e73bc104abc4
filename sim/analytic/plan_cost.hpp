// Equations (1), (2): a compiled plan priced on a system, without what depends on sharding, on the number of micro-batches, and on what
// replicas and stages overlap: plans that differ in nothing else share it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/analytic/unit_cost.hpp"
#include "workloads/compiled.hpp"

namespace rehearse::sim {

using workloads::Parameters;

struct PlanCost {
  // `experts`: of the step, where others ask for the same prices; null: made anew, of the first step.
  PlanCost(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, PriceBook& prices,
           ExpertPrices* experts = nullptr);

  Contentions contentions;
  // Distinct ones: layers whose experts get different tokens, or chunks, differ, and so do those of stages that lie differently.
  std::vector<UnitCost> units;
  std::vector<UnitCost> units_alone;        // [unit] while other stages leave NICs to its calls; none where that makes no difference
  std::vector<Parameters> unit_parameters;  // [unit] that replicas exchange
  std::vector<bool> unit_leads_root;        // [unit]
  std::vector<int> unit_stage;              // [unit] the first stage that holds it
  std::vector<double> hop_s, tied_s;        // [stage] a message to the next; all-reduce of the tied embedding's gradient
  std::vector<PortTimes> hop_ports;         // [stage] of that message
  std::vector<Parameters> parameters;       // [stage]

  // Indices of a chunk's units, in forward order.
  [[nodiscard]] std::span<const std::uint32_t> chunk(std::size_t stage, std::size_t chunk) const {
    const std::size_t i = stage * chunks + chunk;
    return std::span(order).subspan(first[i], first[i + 1] - first[i]);
  }

  std::size_t chunks = 1;  // of a stage
  std::vector<std::uint32_t> order, first;

 private:
  void price_alone(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, PriceBook& prices,
                   int step);
};

}  // namespace rehearse::sim
