// The hash behind ECMP.
#pragma once

#include <cstdint>

#include "config/random.hpp"

namespace rehearse::topology {

// One step of SplitMix64 from this state.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) { return config::mixed(x + config::golden_gamma); }

// What tells the flows between two GPUs apart; `flow` others of their kind.
[[nodiscard]] constexpr std::uint64_t flow_hash(std::uint64_t flow, int from, int to) {
  return (flow << 40U) ^ (static_cast<std::uint64_t>(from) << 20U) ^ static_cast<std::uint64_t>(to);
}

// One of `choices` (0 .. choices-1) for a flow at a place; another place decides independently, so that a fabric does not polarise.
[[nodiscard]] constexpr std::uint32_t pick(std::uint64_t flow_hash, std::uint32_t place, std::uint32_t choices) {
  const std::uint64_t high = mix(mix(flow_hash) ^ place) >> 32U;
  return static_cast<std::uint32_t>(high * choices >> 32U);
}

}  // namespace rehearse::topology
