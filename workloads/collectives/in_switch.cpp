#include "workloads/collectives/in_switch.hpp"

namespace rehearse::workloads::collectives {
namespace {

void append(std::vector<Round>& rounds, int at, const SwitchPass& pass, InSwitch what) {
  const auto index = static_cast<std::size_t>(at);
  if (rounds.size() <= index) rounds.resize(index + 1);
  const int domains = static_cast<int>(pass.members.size()) / pass.locals;
  for (std::size_t position = 0; position < pass.members.size(); ++position) {
    const int member = pass.members[position];
    const int first = between_domains(what) ? pass.members[position % static_cast<std::size_t>(pass.locals)] : member;
    rounds[index].transfers.push_back({.from = what == InSwitch::multicast_between ? first : member,
                                       .to = what == InSwitch::reduction_between ? first : member,
                                       .bytes = pass.part_bytes,
                                       .channel = pass.channel,
                                       .first_block = static_cast<int>(position) % pass.locals,
                                       .blocks = domains,
                                       .block_stride = pass.locals,
                                       .reduce = what == InSwitch::reduction || what == InSwitch::reduction_between,
                                       .in_switch = what});
  }
}

}  // namespace

SwitchPass pass_of(const Layout& layout, double part_bytes) {
  SwitchPass pass{.locals = layout.smallest(), .part_bytes = part_bytes};
  for (int position = 0; position < layout.members(); ++position) pass.members.push_back(layout.member(position));
  return pass;
}

void reduce_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass) { append(rounds, at, pass, InSwitch::reduction); }
void multicast_in_switch(std::vector<Round>& rounds, int at, const SwitchPass& pass) { append(rounds, at, pass, InSwitch::multicast); }
void reduce_between(std::vector<Round>& rounds, int at, const SwitchPass& pass) { append(rounds, at, pass, InSwitch::reduction_between); }
void multicast_between(std::vector<Round>& rounds, int at, const SwitchPass& pass) {
  append(rounds, at, pass, InSwitch::multicast_between);
}

}  // namespace rehearse::workloads::collectives
