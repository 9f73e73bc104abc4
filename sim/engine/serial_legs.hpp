// Rounds of a collective that nobody can see between are one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/comm_plan.hpp"

namespace rehearse::sim {

struct PlanOfGroup {
  CommPlan plan;
  std::uint32_t group = 0;
  bool in_turn = true;  // calls of the group run one after another
};
// Makes one leg, of all delays and then all bytes, of a plan's legs that follow one upon the other over the same links, where no other
// group's plans load these: nothing shares them with it, and it ends when it would. The links must keep their bandwidths.
void join_serial_legs(std::vector<PlanOfGroup>& plans);

}  // namespace rehearse::sim
