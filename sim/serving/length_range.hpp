// Prompts that pools of a role take by their length (router by-length; docs/serving.md, "By length").
#pragma once

#include <limits>
#include <vector>

namespace rehearse::sim {

// Of more than `above` tokens, up to `up_to`.
struct LengthRange {
  int above = 0, up_to = std::numeric_limits<int>::max();
  [[nodiscard]] bool has(double tokens) const { return tokens > above && tokens <= up_to; }
  bool operator==(const LengthRange&) const = default;
};

// Of pools whose longest prompts are these (0: any): each takes what is too long for those with a smaller one.
[[nodiscard]] std::vector<LengthRange> length_ranges(const std::vector<int>& longest);

}  // namespace rehearse::sim
