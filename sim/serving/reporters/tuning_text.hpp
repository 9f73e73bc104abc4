// What `tune` has found, for people.
#pragma once

#include <iosfwd>

#include "sim/serving/tune_sweep.hpp"

namespace rehearse::sim {

void print_sweep(const TuneSweep& sweep, bool colour, std::ostream& out);  // a row for each value
void print_tuning(const ServingTuning& tuning, bool colour, std::ostream& out);

}  // namespace rehearse::sim
