// Where the wall clock of a whole job goes. Every nanosecond is booked once.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "sim/faults/nanoseconds.hpp"

namespace rehearse::sim {

enum class Cause : std::uint8_t {
  trained,     // steps that count, at the step time of the healthy job
  degraded,    // what those steps took longer: slow components, fewer replicas, background writes
  saving,      // training stands still for a checkpoint
  rollback,    // steps, and pieces of steps and saves, that a failure undid
  init,        // the first start
  detection,   // nobody knows yet
  repair,      // waiting for nodes
  restart,     // starting processes, pods, the job
  load,        // reading the checkpoint and the data
  unfinished,  // the step or save during which the time was up
  count
};
inline constexpr std::size_t cause_count = static_cast<std::size_t>(Cause::count);
[[nodiscard]] std::string_view key_of(Cause cause);

struct Account {
  std::array<Ns, cause_count> ns{};
  [[nodiscard]] Ns& operator[](Cause cause) { return ns[static_cast<std::size_t>(cause)]; }
  [[nodiscard]] Ns operator[](Cause cause) const { return ns[static_cast<std::size_t>(cause)]; }
  [[nodiscard]] Ns total() const { return std::accumulate(ns.begin(), ns.end(), Ns{0}); }
};

}  // namespace rehearse::sim
