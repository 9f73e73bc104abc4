#include "sim/wholejob/start_up.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {

double start_up_s(int gpus) {
  constexpr double of_a_node_s = 60, growth = 0.34;
  constexpr int node = 8;
  return of_a_node_s * std::pow(static_cast<double>(std::max(gpus, node)) / node, growth);
}

}  // namespace rehearse::sim
