#include "workloads/collectives/in_switch.hpp"

namespace rehearse::workloads::collectives {
namespace {

void append(std::vector<Round>& rounds, int at, const SwitchPass& pass, InSwitch what) {
  const auto index = static_cast<std::size_t>(at);
  if (rounds.size() <= index) rounds.resize(index + 1);
  const int domains = static_cast<int>(pass.members.size()) / pass.locals;
  for (std::size_t position = 0; position < pass.members.size(); ++position) {
    rounds[index].transfers.push_back({.from = pass.members[position],
                                       .to = pass.members[position],
                                       .bytes = pass.part_bytes,
                                       .channel = pass.channel,
                                       .first_block = static_cast<int>(position) % pass.locals,
                                       .blocks = domains,
                                       .block_stride = pass.locals,
                                       .reduce = what == InSwitch::reduction,
                                       .in_switch = what});
  }
}

}  // namespace

void reduce_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass) { append(rounds, at, pass, InSwitch::reduction); }
void multicast_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass) { append(rounds, at, pass, InSwitch::multicast); }

}  // namespace rehearse::workloads::collectives
