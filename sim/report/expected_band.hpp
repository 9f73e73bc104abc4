// How far an answer may be from what would be measured: what validation found for jobs like it (docs/accuracy.md, "Bands").
#pragma once

#include <optional>
#include <string>

#include "sim/job/job.hpp"

namespace rehearse::sim {

// Factors of the answer between which the stated share of the measurements lay.
struct ErrorBand {
  double low = 1, high = 1;
};

struct ExpectedBands {
  double share = 0;  // of measurements inside
  std::optional<ErrorBand> step, peak;
  std::string step_basis,
      peak_basis;  // which measured runs they come from: "h100-sxm5-80g with megatron-core: 74 runs on up to 10752 GPUs"
};

// Out of platforms/accuracy.yaml (scripts/accuracy writes it): the first row for each metric that the job matches, of which the later ones
// say less about GPU and stack and are wider. On more GPUs than twice what was measured a band is widened by a quarter (assumption).
// Nothing where the file has no row.
[[nodiscard]] ExpectedBands expected_bands(const Job& job);

}  // namespace rehearse::sim
