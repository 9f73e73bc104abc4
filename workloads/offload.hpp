// Which activations move to the host's memory and back, over the units of a GPU in the order in which it works on them (equations 33-35).
#pragma once

#include <span>
#include <vector>

#include "workloads/schedule.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::workloads {

// One unit's forward, backward or gradient for one micro-batch.
struct UnitTurn {
  Slot slot;
  int unit = 0;  // index in its chunk
};
// Chunks without units have none.
[[nodiscard]] std::vector<UnitTurn> unit_turns(const std::vector<Slot>& order, const StageProgram& stage);

// Activations leave while the turn after their own runs, and return while the turn before the one that needs them runs; they stay when
// there is no turn between those two. Nothing of a turn is still on its way out when the turn after the next begins, so that about two
// units' activations are on the GPU.
struct Offloading {
  std::vector<bool> leave;      // [turn] forward turns whose activations leave when they end
  std::vector<bool> come_back;  // [turn] backward turns that need them back first
};
[[nodiscard]] Offloading offloading(std::span<const UnitTurn> turns, const StageProgram& stage);

}  // namespace rehearse::workloads
