// What SHARP does: switches add up what members send, and hand the sum to all. NVLink's inside a domain, InfiniBand's between domains.
#pragma once

#include <vector>

#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads::collectives {

// The share of local member l of every domain: the blocks of the members of local index l, on channel `channel`.
struct SwitchPass {
  std::vector<int> members = {};  // by position: domain * locals + local
  int locals = 1;
  double part_bytes = 0;
  int channel = 0;
};

// Of all members of a uniform group.
[[nodiscard]] SwitchPass pass_of(const Layout& layout, double part_bytes);

// Round `at`: every member gets the sum of its part over its domain.
void reduce_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass);
// Round `at`: every member's part reaches its whole domain.
void multicast_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass);
// Round `at`: the parts of members of equal local index are added up in the network, in the name of the first domain's; and every one of
// them gets the sum.
void reduce_between(std::vector<Round>& rounds, int at, const SwitchPass& pass);
void multicast_between(std::vector<Round>& rounds, int at, const SwitchPass& pass);

}  // namespace rehearse::workloads::collectives
