// A small exact execution of rounds: every transfer as a fluid flow after its alpha, ports shared max-min fairly, waiting as the comment at
// workloads::Round says. Independent of SimGrid.
#pragma once

#include "workloads/collective.hpp"

namespace rehearse::tests {

struct Speeds {
  double alpha_intra_s = 0, alpha_inter_s = 0;
  double intra_bytes_per_s = 1, inter_bytes_per_s = 1;  // of a member's scale-up port and of its NIC share, each direction
};

// Seconds until the last transfer has ended.
[[nodiscard]] double execute(const std::vector<workloads::Round>& rounds, const workloads::GroupShape& group, const Speeds& speeds);

[[nodiscard]] double alphas(const workloads::ClosedForm& form, const Speeds& speeds);
[[nodiscard]] double evaluate(const workloads::ClosedForm& form, const Speeds& speeds);

// Bytes through the busiest port of each kind, summed over all rounds. A port is a member's scale-up port or NIC, one direction.
struct BusiestPorts {
  double intra = 0, inter = 0;
};
[[nodiscard]] BusiestPorts busiest_ports(const std::vector<workloads::Transfer>& transfers, const workloads::GroupShape& group);
[[nodiscard]] std::vector<workloads::Transfer> flatten(const std::vector<workloads::Round>& rounds);

}  // namespace rehearse::tests
