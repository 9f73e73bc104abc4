// The common shape of the handcrafted zero-bubble schedules (Qi et al., ICLR 2024, section 2): after its warm-up a stage repeats
// input gradient, weight gradient, forward; weight gradients lag so far behind that all stages hold equally many activations.
#pragma once

#include <vector>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {

// `warmup` forwards first; the weight gradient of a micro-batch comes `lag` input gradients after its own.
[[nodiscard]] std::vector<Slot> zero_bubble_order(int microbatches, int warmup, int lag);

// Why a zero-bubble schedule with one chunk per GPU cannot take this shape, or "".
[[nodiscard]] std::string zero_bubble_refusal(const char* name, const PipelineShape& shape);

}  // namespace rehearse::workloads
