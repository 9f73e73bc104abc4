// The keys of `faults`: a scenario, a file, or sources by their names (docs/fault-format.md).
#pragma once

#include "config/shape.hpp"

namespace rehearse::sim {

[[nodiscard]] config::Shape faults_shape();

}  // namespace rehearse::sim
