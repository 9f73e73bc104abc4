// Energy of a device in a round: power while it computes, sends and receives, and the idle power for the rest.
#pragma once

#include <optional>

#include "sim/federated/job.hpp"
#include "sim/federated/round_result.hpp"

namespace rehearse::federated {

// Nothing where the entry gives no powers. The model exchange is receiving and sending, told apart by the plan's shares.
[[nodiscard]] std::optional<double> joules(const Job& job, const Plan& plan, std::size_t device, const DeviceRound& round);

}  // namespace rehearse::federated
