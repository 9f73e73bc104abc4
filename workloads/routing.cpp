#include "workloads/routing.hpp"

namespace rehearse::workloads {
namespace {

// SplitMix64's finaliser (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

std::uint64_t seed_of(const ExpertPlan& plan, const RoutingPlace& place) {
  std::uint64_t state = mixed(plan.seed + 0x9e3779b97f4a7c15U);
  for (const int part : {place.step, place.layer, place.microbatch}) {
    state = mixed(state + 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(part));
  }
  if (place.sender >= 0) state = mixed(state + 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(place.sender));
  return state;
}

}  // namespace rehearse::workloads
