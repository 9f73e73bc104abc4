// What a token of the machine stands for while graphs run on it: the kind in the upper bits, then the launch or the communication's slot,
// then the operation, the leg, the timer or the spell.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/engine/machine.hpp"

namespace rehearse::sim {

enum class RunnerEvent : Token { compute_done, delay_done, flow_done, arrival, timer, spell_begins, spell_ends };

struct RunnerToken {
  static constexpr int event_shift = 60, slot_shift = 32;
  static constexpr Token slot_mask = (Token{1} << (event_shift - slot_shift)) - 1;

  RunnerEvent event;
  std::uint64_t slot;
  std::uint32_t low;

  explicit RunnerToken(Token token)
      : event(static_cast<RunnerEvent>(token >> event_shift)),
        slot((token >> slot_shift) & slot_mask),
        low(static_cast<std::uint32_t>(token)) {}
  [[nodiscard]] static Token of(RunnerEvent event, std::uint64_t slot, std::uint32_t low) {
    return (static_cast<Token>(event) << event_shift) | (slot << slot_shift) | low;
  }
};

using LaunchIndex = std::uint32_t;  // of a graph under way

// What the machine will end.
struct alignas(64) Pending {
  std::size_t activities = 0, delays = 0;
};

}  // namespace rehearse::sim
