// Collective algorithms as rounds of transfers on a group. One .cpp per algorithm in workloads/collectives/, registered by NCCL's or MPI's
// name.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/registry.hpp"
#include "workloads/operators.hpp"

namespace rehearse::workloads {

// The group as the algorithms see it: members 0..size-1, and where they sit. Members of one domain are reached over the scale-up fabric.
struct GroupShape {
  int size = 1;
  std::vector<int> domain;       // [member] index of the scale-up domain (node or supernode); members of a domain need not be adjacent
  bool switch_reduces = false;   // the switch of a domain adds up and multicasts (NVLink SHARP)
  bool network_reduces = false;  // so do the switches between domains (SHARP)
  // Members are nodes of one GPU that fill whole axes of a torus, closed to rings: as many along each, member 0 at the corner, the last
  // axis counted fastest. Else empty.
  std::vector<int> torus = {};
  bool mesh = false;           // two members of a domain have a link of their own for each direction; otherwise one port each, on a switch
  std::vector<int> rail = {};  // [member] which of its node's NICs is its own; empty: members that lie alike in all domains
  [[nodiscard]] int domains() const;
  [[nodiscard]] bool uniform() const;  // every domain holds equally many members
};

// What a scale-up switch does with data, beside passing them on. reduction: every member of `to`'s domain sends, itself included, and `to`
// gets the sum. multicast: `from` sends once and every member of its domain gets it, itself included. from and to are the same member.
// What the switches between domains do: reduction_between: `from` sends its part into the network, where it is added to all that are for
// the same `to`; multicast_between: `to` gets the sum that `from` stands for. That member's own part travels likewise, from and to are then
// the same. A link between switches carries such a sum once.
enum class InSwitch : std::uint8_t { nothing, reduction, multicast, reduction_between, multicast_between };
[[nodiscard]] inline bool between_domains(InSwitch what) { return what >= InSwitch::reduction_between; }

struct Transfer {
  int from = 0, to = 0;  // members
  double bytes = 0;
  int channel = 0;   // transfers of different channels do not wait for each other
  int rail_of = -1;  // between domains: use the NIC of this member's rail at both ends; -1 = the sender's own
  // What is in it, for those who check the data and not only its size: the blocks first_block + i*block_stride, i < blocks, of the
  // channel's share of the buffer. Block p belongs to the member at position p when members are sorted by domain (domains by first
  // appearance); the block that position s sends to position t in an all-to-all is s*size + t; what s sends in a send-recv is block s.
  int first_block = 0, blocks = 0, block_stride = 1;
  bool reduce = false;  // the receiver adds it to what it has; otherwise it keeps what it gets
  InSwitch in_switch = InSwitch::nothing;
};

// When a transfer may run, channel by channel. It starts (its alpha begins) when these of earlier rounds have ended: those that reached its
// sender, those that its sender sent to other members, and those that its receiver got from other members: a member deals with its partners
// one by one. Transfers from one member to the same other one are a stream: bytes follow one another, but the alpha of the next one does
// not wait for the bytes of the one before. In a ring that spans domains a block thus pays the longer alpha only where it crosses between
// domains.
struct Round {
  std::vector<Transfer> transfers;
};

// The rule above, spelt out for one transfer. Transfers are numbered in the order of their rounds, and within a round as they stand there.
struct Dependency {
  std::vector<std::uint32_t> before_alpha;  // these must have ended before the alpha begins; ascending
  std::int64_t before_bytes = -1;  // this one must have ended before the bytes begin to flow: the one before in the stream; -1 = none
};
[[nodiscard]] std::vector<Dependency> dependencies(std::span<const Round> rounds);

// The terms of the closed form, T = sum of rounds*alpha of each kind + max over port kinds or sum (see `sequential`).
// docs/collectives.md says for which groups it is exact. A round with transfers of both kinds waits for the slower one, the one between
// domains.
struct ClosedForm {
  int rounds_intra = 0;    // rounds on the longest way that stay inside a domain
  int rounds_inter = 0;    // rounds on it that cross domains
  int rounds_switch = 0;   // passes through a switch that reduces: then the intra bytes go at its rate
  int rounds_network = 0;  // the same of the switches between domains, and the inter bytes
  double intra_bytes =
      0;  // through the busiest scale-up port (mesh: link) of any member, one direction (binomial: both, they follow one another)
  double inter_bytes = 0;               // through the busiest NIC share of any member, likewise
  std::vector<double> axis_bytes = {};  // of a torus: through the busiest link of each axis, one direction
  bool sequential = false;              // true: intra and inter phases follow one another (add), false: they run together (max)
  // Of rings over uniform domains, the edges inside a domain between two that leave it: blocks queue where they would pay an alpha
  // elsewhere, and stream_s() says how much of the two adds up. 0: the alphas and the bytes add up.
  int hops_inside = 0;
};

// Seconds of a form with hops_inside, from those of a message and of all bytes inside the domains and between them.
[[nodiscard]] double stream_s(const ClosedForm& form, double alpha_intra_s, double alpha_inter_s, double intra_s, double inter_s);

// What becomes of an algorithm's rounds when they are not all simulated.
enum class Pace {
  even,    // every edge carries equal parts from the first round to the last: one flow per pair with the bytes of all rounds takes as long
  rounds,  // they follow one another
  phases,  // an even ring inside every domain and one across the domains, one after the other
  chunks,  // chunks much smaller than the buffer are on all edges at once: as `even`, also where every round is simulated
};

class Collective {
 public:
  static constexpr std::string_view kind = "collective";
  virtual ~Collective() = default;

  [[nodiscard]] virtual bool supports(CollectiveKind kind) const = 0;
  // Whether rounds() and closed_form() have an answer for this group; where the answer is no they throw config::InputError.
  [[nodiscard]] virtual bool serves(CollectiveKind kind, const GroupShape&) const { return supports(kind); }
  // Whether the libraries that have the algorithm use it on such a fabric: what `simulation.algorithm: auto` goes by.
  [[nodiscard]] virtual bool fits(CollectiveKind kind, const GroupShape& group) const { return serves(kind, group); }
  // Whether it is a kernel that reads the memory of its peers, instead of a library's channels: its rounds have a latency of their own.
  [[nodiscard]] virtual bool reads_peers() const { return false; }
  // Whether NCCL runs it by LL and LL128 too.
  [[nodiscard]] virtual bool runs_by_protocols(CollectiveKind) const { return false; }
  [[nodiscard]] virtual Pace pace(CollectiveKind, const GroupShape&) const { return Pace::rounds; }
  // Whether in every round each member does what all others do, seen from its own place: one message can then stand for all of a round.
  [[nodiscard]] virtual bool rotates(CollectiveKind, const GroupShape&) const { return false; }
  // Whether it is rings, as many as a domain has members (one where there is one domain), in which every member passes a part of the buffer
  // on in every round.
  [[nodiscard]] virtual bool laps(CollectiveKind) const { return false; }
  // Bytes that no member sends more than, inside its domain and out of it together; infinity: all that the ports of both carry.
  [[nodiscard]] virtual double most_sent(CollectiveKind, const GroupShape&, double /*bytes*/) const {
    return std::numeric_limits<double>::infinity();
  }
  // Messages through a scale-up port at once, of which it carries port_bytes in all.
  [[nodiscard]] virtual double messages_at_once(CollectiveKind, const GroupShape&, double /*bytes*/, double /*port_bytes*/) const {
    return 1;
  }
  // bytes as in Communication. root: broadcast only. send_recv: every member sends to the next one, as in nccl-tests' sendrecv.
  // A kind that is not supported or a group that the algorithm cannot serve: config::InputError. A malformed group: std::invalid_argument.
  [[nodiscard]] virtual std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root = 0) const = 0;
  // Written down from theory, not derived from rounds(); tests hold the two together. Broadcast: from member 0.
  [[nodiscard]] virtual ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const = 0;
  // sum_per_pair() of all rounds; by chunks: all transfers, channels being flows of their own. For large groups much cheaper than the
  // rounds.
  [[nodiscard]] virtual std::vector<Transfer> volumes(CollectiveKind kind, const GroupShape& group, double bytes, int root = 0) const;
};

// One transfer per pair of members, rail and service of a switch with their bytes added, in this order, channel 0, no blocks.
[[nodiscard]] std::vector<Transfer> sum_per_pair(std::span<const Transfer> transfers);

using CollectiveRegistry = config::Registry<Collective>;

// What every release of NCCL since 2.4 has.
[[nodiscard]] inline std::vector<std::string> rings_and_trees() { return {"ring", "tree"}; }

// As nccl-tests print them: algbw = bytes / t, busbw = algbw x 2(n-1)/n (all-reduce), x (n-1)/n (all-gather, reduce-scatter, all-to-all),
// x 1.
struct Bandwidth {
  double algbw_bytes_per_s = 0, busbw_bytes_per_s = 0;
};
[[nodiscard]] Bandwidth nccl_bandwidth(CollectiveKind kind, int ranks, double bytes, double seconds);

}  // namespace rehearse::workloads
