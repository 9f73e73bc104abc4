// Everybody to everybody at once. On a full mesh every transfer has a link of its own: HCCL's mesh, one round for all-gather,
// reduce-scatter and all-to-all, two for all-reduce and broadcast. On a switch the transfers of a member share its port.
#include <string>

#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/pairwise.hpp"
#include "workloads/collectives/passes.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::RingWalk;

RingWalk all_members(const Layout& layout, double bytes) {
  RingWalk ring{.part_bytes = bytes / layout.members()};
  for (int position = 0; position < layout.members(); ++position) {
    ring.stops.push_back({.member = layout.member(position), .first_block = position});
  }
  return ring;
}

// The rounds of the pairwise exchange, all at once.
std::vector<Round> all_to_all(const Layout& layout, double bytes) {
  std::vector<Round> rounds(1);
  for (const Round& round : collectives::pairwise_rounds(layout, bytes)) {
    for (Transfer transfer : round.transfers) {
      transfer.channel = 0;
      rounds.front().transfers.push_back(transfer);
    }
  }
  return rounds;
}

class Direct final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind != CollectiveKind::send_recv; }

  // Between domains only the all-to-all, whose data differ for every member.
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override {
    return supports(kind) && (group.domains() == 1 || (kind == CollectiveKind::all_to_all && group.uniform()));
  }

  // NCCL posts the messages of an all-to-all at once, on a switch too.
  [[nodiscard]] bool fits(CollectiveKind kind, const GroupShape& group) const override {
    return serves(kind, group) && (group.mesh || (kind == CollectiveKind::all_to_all && group.domains() == 1));
  }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Layout layout = checked(kind, group, root);
    const RingWalk members = all_members(layout, bytes);
    std::vector<Round> rounds;
    switch (kind) {
      case CollectiveKind::all_reduce:
        direct_all_gather(rounds, direct_reduce_scatter(rounds, 0, members), members);
        return rounds;
      case CollectiveKind::reduce_scatter:
        direct_reduce_scatter(rounds, 0, members);
        return rounds;
      case CollectiveKind::all_gather:
        direct_all_gather(rounds, 0, members);
        return rounds;
      case CollectiveKind::broadcast:
        direct_all_gather(rounds, direct_scatter(rounds, 0, members, layout.position(root)), members);
        return rounds;
      default:
        return all_to_all(layout, bytes);
    }
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Layout layout = checked(kind, group, 0);
    const int n = layout.members(), g = layout.largest();
    if (n == 1) return {};
    const int phases = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast ? 2 : 1;
    const int blocks_inside = layout.mesh() && g > 1 ? 1 : g - 1;
    if (layout.domains() > 1) return {.rounds_inter = 1, .intra_bytes = bytes * blocks_inside / n, .inter_bytes = bytes * (n - g) / n};
    return {.rounds_intra = phases, .intra_bytes = phases * bytes * blocks_inside / n};
  }

 private:
  Layout checked(CollectiveKind kind, const GroupShape& group, int root) const {
    if (!supports(kind)) collectives::refuse("direct", kind);
    collectives::check_root(group, root);
    Layout layout(group);
    if (!serves(kind, group)) {
      throw config::InputError("collective 'direct' stays inside one domain, except for an all-to-all among domains of equal size",
                               "the group has " + std::to_string(layout.domains()) + " domains; 'hierarchical' serves it");
    }
    return layout;
  }
};

const CollectiveRegistry::Registration<Direct> direct_registration("direct");

}  // namespace
}  // namespace rehearse::workloads
