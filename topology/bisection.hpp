// How much the lower half of the nodes can send to the upper half.
#pragma once

#include "topology/plan.hpp"

namespace rehearse::topology {

struct Bisection {
  double flow_bytes_per_s = 0;       // maximum flow, one direction
  double injection_bytes_per_s = 0;  // what the NICs of the lower half could send
};

// Zero for a single node.
[[nodiscard]] Bisection measure_bisection(const Plan& plan, const Mask& mask);

}  // namespace rehearse::topology
