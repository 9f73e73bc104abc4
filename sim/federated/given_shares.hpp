// Shares from a file.
#pragma once

#include "sim/federated/plan.hpp"

namespace rehearse::federated {

// CSV: name, uplink, downlink, server; a row per device. Throws config::InputError where a device has none, one that it uses is 0, or they
// add up to more than 1.
[[nodiscard]] std::vector<LinkShares> read_shares(const Job& job, const CutChoice& cuts);

}  // namespace rehearse::federated
