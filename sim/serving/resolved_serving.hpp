// The section `serving` with everything that it names written out, so that the resolved job may lie anywhere.
#pragma once

#include "config/node.hpp"

namespace rehearse::sim {

[[nodiscard]] config::Node resolved_serving(config::Node serving);

}  // namespace rehearse::sim
