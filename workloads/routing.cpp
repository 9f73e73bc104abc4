#include "workloads/routing.hpp"

#include "config/random.hpp"

namespace rehearse::workloads {
std::uint64_t seed_of(const ExpertPlan& plan, const RoutingPlace& place) {
  std::uint64_t state = config::mixed(plan.seed + config::golden_gamma);
  for (const int part : {place.step, place.layer, place.microbatch}) {
    state = config::mixed(state + config::golden_gamma + static_cast<std::uint64_t>(part));
  }
  if (place.sender >= 0) state = config::mixed(state + config::golden_gamma + static_cast<std::uint64_t>(place.sender));
  return state;
}

}  // namespace rehearse::workloads
