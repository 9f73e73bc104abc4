// A cluster for faults: 16 nodes of eight rails under four spines.
#pragma once

#include "sim/faults/scenario.hpp"

namespace rehearse::tests {

inline const sim::FaultContext sixteen_nodes{.nodes = 16, .rails = 8, .spines = 4};

inline sim::FaultScenario scenario(const std::string& text) {
  return sim::FaultScenario::read(config::Node::load_text(text, "faults.yaml"), sixteen_nodes);
}

// All faults of the first `days`.
inline std::vector<sim::Fault> history(const sim::FaultScenario& from, std::uint64_t seed, double days) {
  std::vector<sim::Fault> faults;
  const auto stream = from.open(seed);
  while (auto fault = stream->next()) {
    if (sim::to_s(fault->at) > days * sim::seconds_per_day) break;
    faults.push_back(std::move(*fault));
  }
  return faults;
}

}  // namespace rehearse::tests
