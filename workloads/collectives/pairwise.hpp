// Exchanges in which the members send one another different data: all-to-all by pairwise exchange, and the shift by one of send-recv.
#pragma once

#include <vector>

#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads::collectives {

// In every round a member sends the block of bytes/n of one other member to it. Exchanges inside and between domains run side by side, on
// channels 0 and 1. In uniform groups round (a, b) takes member l of domain d to member l+b of domain d+a, so that no round mixes the two.
[[nodiscard]] std::vector<Round> pairwise_rounds(const Layout& layout, double bytes);
[[nodiscard]] ClosedForm pairwise_form(const Layout& layout, double bytes);

// Every member sends `bytes` to the next one in group order.
[[nodiscard]] std::vector<Round> shift_rounds(const Layout& layout, double bytes);
[[nodiscard]] ClosedForm shift_form(const Layout& layout, double bytes);

}  // namespace rehearse::workloads::collectives
