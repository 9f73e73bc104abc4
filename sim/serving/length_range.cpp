#include "sim/serving/length_range.hpp"

#include <algorithm>

namespace rehearse::sim {

std::vector<LengthRange> length_ranges(const std::vector<int>& longest) {
  std::vector<LengthRange> out;
  for (const int own : longest) {
    LengthRange& range = out.emplace_back();
    if (own > 0) range.up_to = own;
    for (const int other : longest) {
      if (other > 0 && other < range.up_to) range.above = std::max(range.above, other);
    }
  }
  return out;
}

}  // namespace rehearse::sim
