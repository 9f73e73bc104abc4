// What the members of a group send each other when tokens travel to their experts and back, and what of it passes through whose ports.
#pragma once

#include <memory>
#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::workloads {

// One dispatch (or, reversed, one combine) of all members of a group at once.
struct Exchange {
  // (token, expert) pairs that a member sends to each, itself included: [to] when all members send alike; else [from * n + to] of
  // by_sender, which the exchanges of a layer share, in so many parts of which this is one.
  std::vector<double> pairs;
  std::shared_ptr<const std::vector<double>> by_sender = {};
  int parts = 1;
  double bytes_per_pair = 0;
  double bytes_per_expert = 0;  // hierarchical: more in each copy of a token, for every expert of the domain that it enters
  bool reversed = false;        // from `to` back to `from`
  // Hierarchical: a token's copy crosses into a domain once and reaches each rank in it once, however many experts it has there. It enters
  // over the NIC of the sender's counterpart, which passes it on.
  bool hierarchical = false;
  int top_k = 1, experts = 1;
  int domains_per_token = 0;         // at most so many; 0: any number
  bool slower_with_members = false;  // a call takes longer for each member of a domain, whatever it moves (HybridEP)

  [[nodiscard]] int members() const;
  [[nodiscard]] double pairs_of(int from, int to) const {
    return by_sender ? (*by_sender)[static_cast<std::size_t>(from) * members() + to] / parts : pairs[to];
  }
  [[nodiscard]] double bytes(int from, int to) const;  // of the pair, before any token is sent once for several experts
};

// Bytes through the ports of every member, per direction; intra in a mesh: through its busiest direct link.
struct PortLoads {
  std::vector<double> intra_out, intra_in, inter_out, inter_in;  // [member]
  bool forwards = false;                                         // bytes that came over the network go on over the scale-up fabric
  [[nodiscard]] double most_intra() const;
  [[nodiscard]] double most_inter() const;
};
// O(n) when all members send alike, else O(n^2). A hierarchical exchange of a group whose domains differ in size goes pair by pair.
[[nodiscard]] PortLoads port_loads(const Exchange& exchange, const GroupShape& group);

// Probability that none of the k distinct experts of a token lies in a part with this share of the traffic: exact when tokens choose among
// `experts` evenly (hypergeometric), otherwise as if the part held share * experts even ones.
[[nodiscard]] double missed(double share, int top_k, double experts);

}  // namespace rehearse::workloads
