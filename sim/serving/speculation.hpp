// Speculative decoding: tokens that something cheap proposes, and the model tries in one pass (Leviathan, Kalman, Matias, Fast Inference
// from Transformers via Speculative Decoding, ICML 2023).
#pragma once

#include <cstdint>

#include "config/random.hpp"

namespace rehearse::sim {

struct Speculation {
  int tokens = 0;         // tried in every pass beside the next one; 0: none
  double acceptance = 0;  // chance that a tried one is taken, where all before it were

  // Of a pass, on average: (1 - a^(g + 1)) / (1 - a).
  [[nodiscard]] double tokens_a_pass() const;
  // Passes until so many tokens are there, on average; exact.
  [[nodiscard]] double mean_passes(double tokens) const;
  // The same drawn; at least 1 where there are tokens.
  [[nodiscard]] std::int64_t draw_passes(std::int64_t tokens, config::Random random) const;
};

}  // namespace rehearse::sim
