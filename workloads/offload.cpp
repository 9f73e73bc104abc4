#include "workloads/offload.hpp"

#include <map>
#include <tuple>

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
  std::map<std::tuple<int, int, int>, std::size_t> forward;  // (chunk, micro-batch, unit) -> turn
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto& [slot, unit] = turns[i];
    if (stage.chunks[slot.chunk][unit].program->offloaded_bytes == 0 || slot.kind == Slot::Kind::backward_weight) continue;
    if (slot.kind == Slot::Kind::forward) {
      forward[{slot.chunk, slot.microbatch, unit}] = i;
      continue;
    }
    const std::size_t from = forward.at({slot.chunk, slot.microbatch, unit});
    moves.leave[from] = moves.come_back[i] = i >= from + shortest;
  }
  return moves;
}

}  // namespace rehearse::workloads
