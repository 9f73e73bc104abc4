#include "workloads/offload.hpp"

#include <algorithm>

namespace rehearse::workloads {

std::vector<UnitTurn> unit_turns(const std::vector<Slot>& order, const StageProgram& stage) {
  std::vector<UnitTurn> turns;
  for (const Slot& slot : order) {
    const int units = static_cast<int>(stage.chunks[slot.chunk].size());
    for (int k = 0; k < units; ++k) turns.push_back({slot, slot.kind == Slot::Kind::forward ? k : units - 1 - k});
  }
  return turns;
}

Offloading offloading(std::span<const UnitTurn> turns, const StageProgram& stage) {
  constexpr std::size_t shortest = 3;  // turns from forward to backward, one for each way between them
  Offloading moves{std::vector<bool>(turns.size()), std::vector<bool>(turns.size())};
  std::vector<std::size_t> first{0};  // [chunk] its first unit's number
  for (const std::vector<Unit>& chunk : stage.chunks) first.push_back(first.back() + chunk.size());
  std::vector<std::size_t> forward;  // [micro-batch and unit] turn
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto& [slot, unit] = turns[i];
    if (stage.chunks[slot.chunk][unit].program->offloaded_bytes == 0 || slot.kind == Slot::Kind::backward_weight) continue;
    const std::size_t place = static_cast<std::size_t>(slot.microbatch) * first.back() + first[slot.chunk] + static_cast<std::size_t>(unit);
    if (slot.kind == Slot::Kind::forward) {
      forward.resize(std::max(forward.size(), place + 1));
      forward[place] = i;
      continue;
    }
    const std::size_t from = forward[place];
    moves.leave[from] = moves.come_back[i] = i >= from + shortest;
  }
  return moves;
}

}  // namespace rehearse::workloads
