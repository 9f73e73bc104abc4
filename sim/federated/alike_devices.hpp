// Devices that go through a round in the same way, by symmetry: one of each class is simulated.
#pragma once

#include "sim/federated/simulate_round.hpp"

namespace rehearse::federated {

struct AlikeDevices {
  std::vector<std::size_t> representative;  // [class] device
  std::vector<std::size_t> members;         // [class] how many
  std::vector<std::size_t> class_of;        // [device]
};

// Identical devices with reserved shares do not touch each other; with weights m of them are as one with m times the weight and the work.
// First come first served, joint batches and who leaves or is slow tell devices apart.
[[nodiscard]] AlikeDevices alike_devices(const Job& job, const Plan& plan, const Conditions& conditions);

}  // namespace rehearse::federated
