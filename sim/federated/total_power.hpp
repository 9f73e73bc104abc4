// Devices that keep their total power: a share x of the uplink's band carries more than x of its rate, x B log2(1 + p g / (x B N0)).
// Concave in x, so that the best shares have no closed form: prices by cutting planes, demands and the deadline by Newton's method.
#pragma once

#include "sim/federated/plan.hpp"

namespace rehearse::federated {

// The part of the uplink's whole rate that a share of the band carries.
[[nodiscard]] double uplink_part(const Job& job, const Device& device, double share);

// Shares, prices and bound; latencies are left to the caller.
[[nodiscard]] Plan total_power_plan(const Job& job, const CutChoice& cuts);  // with these cuts
[[nodiscard]] Plan tuned_total_power_plan(const Job& job);                   // with the best responses to the best prices

}  // namespace rehearse::federated
