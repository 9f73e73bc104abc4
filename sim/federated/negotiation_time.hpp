// What the decentralised negotiation costs on the job's own links.
#pragma once

#include "sim/federated/plan.hpp"
#include "sim/federated/protocol.hpp"

namespace rehearse::federated {

// All devices answer at once over the shared uplink, and all hear the announcement over the shared downlink, shared out as well as can be.
[[nodiscard]] double negotiation_s(const Job& job, const Negotiation& negotiation);

}  // namespace rehearse::federated
