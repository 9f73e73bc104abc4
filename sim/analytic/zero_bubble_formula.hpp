// The step of the handcrafted zero-bubble schedules (Qi et al., ICLR 2024, section 2.2).
#pragma once

#include "sim/analytic/pipeline_formula.hpp"

namespace rehearse::sim {

// The busiest stage's m (F + B + W), and for every other stage on the way in and out F + B - saved * W, as far as it is positive, and its
// hops: weight gradients fill what is left of the warm-up and the cool-down. saved: 1 for ZB-H1, 2 for ZB-H2.
[[nodiscard]] double zero_bubble_s(const PipelineTimes& times, int saved);

}  // namespace rehearse::sim
