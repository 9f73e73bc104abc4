#include "workloads/routing.hpp"

#include "workloads/random.hpp"

namespace rehearse::workloads {
std::uint64_t seed_of(const ExpertPlan& plan, const RoutingPlace& place) {
  std::uint64_t state = mixed(plan.seed + golden_gamma);
  for (const int part : {place.step, place.layer, place.microbatch}) {
    state = mixed(state + golden_gamma + static_cast<std::uint64_t>(part));
  }
  if (place.sender >= 0) state = mixed(state + golden_gamma + static_cast<std::uint64_t>(place.sender));
  return state;
}

}  // namespace rehearse::workloads
