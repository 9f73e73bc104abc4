// The hash behind ECMP.
#pragma once

#include <cstdint>

namespace rehearse::topology {

// The finaliser of splitmix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// One of `choices` (0 .. choices-1) for a flow at a place; another place decides independently, so that a fabric does not polarise.
[[nodiscard]] constexpr std::uint32_t pick(std::uint64_t flow_hash, std::uint32_t place, std::uint32_t choices) {
  const std::uint64_t high = mix(mix(flow_hash) ^ place) >> 32U;
  return static_cast<std::uint32_t>(high * choices >> 32U);
}

}  // namespace rehearse::topology
