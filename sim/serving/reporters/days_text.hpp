// What `run` found out, for people.
#pragma once

#include <iosfwd>

#include "sim/serving/service_days.hpp"

namespace rehearse::sim {

void print_days(const ServiceDays& days, bool colour, std::ostream& out);

}  // namespace rehearse::sim
