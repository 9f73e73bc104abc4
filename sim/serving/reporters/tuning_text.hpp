// What `tune` has found, for people.
#pragma once

#include <iosfwd>

#include "sim/serving/tune.hpp"

namespace rehearse::sim {

void print_tuning(const ServingTuning& tuning, bool colour, std::ostream& out);

}  // namespace rehearse::sim
