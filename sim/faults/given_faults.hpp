// Faults that are given one by one, as `script` and `trace` do.
#pragma once

#include <vector>

#include "sim/faults/fault_source.hpp"

namespace rehearse::sim {

// {at: 3 h, node: 17, ...} and the keys of a Consequence.
[[nodiscard]] std::vector<config::Parameter> given_fault_keys();
[[nodiscard]] Fault read_given_fault(const config::Node& node, const FaultContext& context, const std::string& label);

// `faults` in order of time.
[[nodiscard]] std::unique_ptr<FaultPlan> given_faults(std::vector<Fault> faults);

}  // namespace rehearse::sim
