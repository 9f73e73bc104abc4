// Why the simulated round is not the formula's, in sentences.
#pragma once

#include "sim/federated/sections.hpp"

namespace rehearse::federated {

[[nodiscard]] std::vector<std::string> reasons_of(const RoundSection& section);

}  // namespace rehearse::federated
