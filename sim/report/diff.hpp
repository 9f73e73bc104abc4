// What `diff` is told beside its jobs, and what its reporters share.
#pragma once

#include <string>
#include <vector>

#include "sim/compare/difference.hpp"
#include "sim/report/table.hpp"

namespace rehearse::sim {

struct GpuHourPrice {
  double price = 0;  // of one GPU for an hour, in whatever money
};

// Keys that differ, on the console: 40 at most.
[[nodiscard]] Table keys_table(const std::vector<KeyDifference>& keys, const std::string& a, const std::string& b);

}  // namespace rehearse::sim
