// What NVLink SHARP does: the scale-up switch adds up what members send, and hands one member's data to all.
#pragma once

#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::workloads::collectives {

// The share of local member l of every domain: the blocks of the members of local index l, on channel `channel`.
struct SwitchPass {
  std::vector<int> members = {};  // by position: domain * locals + local
  int locals = 1;
  double part_bytes = 0;
  int channel = 0;
};

// Round `at`: every member gets the sum of its part over its domain.
void reduce_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass);
// Round `at`: every member's part reaches its whole domain.
void multicast_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass);

}  // namespace rehearse::workloads::collectives
