#include "sim/serving/length_buckets.hpp"

#include <algorithm>
#include <utility>

#include "sim/serving/side_formula.hpp"

namespace rehearse::sim {

double LengthBucket::instances() const {
  double sum = 0;
  for (const PoolDeployment& pool : pools) sum += pool.pool->instances;
  return sum;
}

std::vector<std::unique_ptr<const LengthBucket>> length_buckets(std::span<const PoolDeployment> pools, const LoadMoments& load) {
  std::vector<int> longest;
  for (const PoolDeployment& pool : pools) longest.push_back(pool.pool->longest_prompt);
  const std::vector<LengthRange> ranges = length_ranges(longest);
  std::vector<LengthRange> rising = ranges;
  std::ranges::sort(rising, {}, &LengthRange::up_to);
  rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
  std::vector<std::unique_ptr<const LengthBucket>> out;
  for (const LengthRange& range : rising) {
    auto bucket = std::make_unique<LengthBucket>();
    bucket->share = share_within(load, range);
    bucket->load = bucket->share > 0 ? load_within(load, range) : load;
    for (std::size_t i = 0; i < pools.size(); ++i) {
      if (ranges[i] != range) continue;
      bucket->pools.push_back(pools[i]);
      bucket->places.push_back(i);
    }
    bucket->side = std::make_unique<const SideFormula>(bucket->pools, bucket->load, "least-requests");
    out.push_back(std::move(bucket));
  }
  return out;
}

}  // namespace rehearse::sim
