// Plans or deployments that no other beats: one goal against another.
#pragma once

#include <string>
#include <vector>

#include "sim/report/page/html.hpp"

namespace rehearse::sim::page {

struct FrontAxis {
  std::string name;
  Unit ticks = Unit::plain, exact = Unit::plain;  // how the axis says numbers, and a dot that is pointed at
  std::vector<double> values;                     // of each dot
};

// A circle for each; with `line` also the line that none is beyond, where both goals are to be small and dots go from the best across on.
[[nodiscard]] std::string front_chart(const FrontAxis& across, const FrontAxis& up, const std::vector<std::string>& names, bool line);

}  // namespace rehearse::sim::page
