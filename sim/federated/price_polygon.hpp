// Prices that may still be the best ones: a polygon in the simplex of prices that add up to 1. A cut through its centre of gravity takes
// away at least 1 - 1/e of it (Gruenbaum 1960), whatever the direction.
#pragma once

#include <vector>

#include "sim/federated/problem.hpp"

namespace rehearse::federated {

class PricePolygon {
 public:
  // Only these resources have prices.
  explicit PricePolygon(const std::vector<int>& resources);

  [[nodiscard]] PerResource centre() const;
  // The longest side of the box around it.
  [[nodiscard]] double extent() const;
  // Keeps what lies in the direction of `ascent` from `through`.
  void keep_above(const PerResource& through, const PerResource& ascent);

 private:
  std::vector<PerResource> corners_;
};

}  // namespace rehearse::federated
