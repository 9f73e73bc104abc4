// What a communication puts on which wires: the one place where collectives become flows, with all ranks simulated or folded.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/cost/communication.hpp"
#include "sim/engine/wiring.hpp"

namespace rehearse::sim {

// A flow of `bytes` that loads all of its wires at once, each so many times: it goes at the pace of the slowest.
struct Load {
  int phase = 0;  // flows of a phase start when those of the phase before have ended
  double bytes = 0;
  std::vector<std::pair<Wire, int>> wires;  // and how often each is loaded; ascending, none twice
  int member = -1;                          // of an exchange: whose port it is; otherwise -1, all members' together
};

// Rings and trees are pipelined: all of their edges go at one pace, so that each is one flow over all wires of all edges. Other collectives
// are a flow for each volume that some wires carry, or, where rounds follow one another, one over the scale-up ports and one over the rest
// (after one another where their closed form is sequential), over the wires of a ring with the bytes of the closed form. An exchange of its
// own is a flow for each port of each member, since a hot rank's ports stay hot, and one for each trunk. Copies to the host are a flow of
// one member. members: as in CommunicationModel::price; flow: what ecmp hashes.
[[nodiscard]] std::vector<Load> loads_of(const workloads::Communication& what, const CallPrice& price, std::span<const int> members,
                                         const CommunicationModel& model, const Wiring& wiring, std::uint64_t flow);

// Whether fidelity `step` runs it as these flows too: tokens that counterparts pass on are no messages between pairs, and chunks much
// smaller than the buffer are on all edges at once.
[[nodiscard]] bool flows_in_every_round(const workloads::Communication& what, const CallPrice& price, std::span<const int> members,
                                        const CommunicationModel& model);

// The same round by round: all messages between two members as one, of collectives and shifts, and of exchanges between pairs.
[[nodiscard]] std::vector<workloads::Transfer> messages_of(const workloads::Communication& what, const CallPrice& price,
                                                           std::span<const int> members, const CommunicationModel& model);
// A message between two ranks.
[[nodiscard]] Load load_of_message(int from, int to, double bytes, int rail, const Wiring& wiring, std::uint64_t flow);

}  // namespace rehearse::sim
