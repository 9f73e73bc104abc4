// A side whose router goes by the lengths of prompts, by formula: every range of lengths is a side of its own with its own load.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/serving/deployment.hpp"
#include "sim/serving/load_moments.hpp"

namespace rehearse::sim {

class SideFormula;

// Pools that take the same prompts.
struct LengthBucket {
  LoadMoments load;
  double share = 0;  // of the requests; 0: none come, and the load is that of all
  std::vector<PoolDeployment> pools;
  std::vector<std::size_t> places;  // of these among those of the side
  std::unique_ptr<const SideFormula> side;
  [[nodiscard]] double instances() const;
};

// From the shortest prompts on.
[[nodiscard]] std::vector<std::unique_ptr<const LengthBucket>> length_buckets(std::span<const PoolDeployment> pools,
                                                                              const LoadMoments& load);

}  // namespace rehearse::sim
