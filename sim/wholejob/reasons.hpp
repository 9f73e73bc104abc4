// Why a simulated job and its formula differ: which assumption of (36)-(41) does not hold, and what that comes to.
#pragma once

#include <string>
#include <vector>

#include "sim/wholejob/report.hpp"

namespace rehearse::sim {

struct EttrDifference {
  std::string cause;   // "rollback", ...: a cause of the account, or several that the formula takes together
  double points = 0;   // percentage points of the wall clock that the simulation spends on it more than the formula
  std::string reason;  // the formula's assumption that does not hold
};

// Largest first, those of at least 0.01 points. With `ettr` they add up: ETTR simulated - ETTR by formula = - the sum of all differences.
[[nodiscard]] std::vector<EttrDifference> differences_of(const WholeJobReport& report);

}  // namespace rehearse::sim
