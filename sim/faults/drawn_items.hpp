// Items of `simulation.faults` that stand for others: some of the job's GPUs, ports or nodes drawn at random, or what a scenario holds
// ready.
#pragma once

#include <string>
#include <vector>

#include "sim/faults/step_faults.hpp"

namespace rehearse::sim {

struct DrawnItems {
  std::vector<std::string> items;     // each of one thing
  bool scenario = false;              // failures that come after the end of the step never happen
  std::optional<double> drawn_for_s;  // scenario: for so much of the step
};

// `index`: of the item in its list; each has random numbers of its own. Nothing where the item stands for itself.
[[nodiscard]] std::optional<DrawnItems> draw_items(const config::Node& node, std::size_t index, const StepFaultContext& context);

}  // namespace rehearse::sim
