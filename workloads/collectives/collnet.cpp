// NCCL's CollNet with SHARP: an all-reduce whose sums between domains are the network switches'. In each domain the members exchange
// directly until each has the sum of its own part, which goes out over its NIC once and comes back as the sum of all domains; then they
// hand the parts round. All of it at once, chunk by chunk.
#include "workloads/collectives/in_switch.hpp"
#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/passes.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::RingWalk;
using collectives::SwitchPass;

// The members of a domain and the parts of their places.
RingWalk members_of_domain(const Layout& layout, int domain, double part_bytes) {
  RingWalk members{.part_bytes = part_bytes};
  for (int local = 0; local < layout.smallest(); ++local) {
    members.stops.push_back({.member = layout.member(layout.first(domain) + local),
                             .first_block = local,
                             .blocks = layout.domains(),
                             .block_stride = layout.smallest()});
  }
  return members;
}

class CollNet final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override {
    return supports(kind) && group.network_reduces && group.uniform() && group.domains() > 1;
  }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Layout layout = checked(kind, group, root);
    const SwitchPass pass = collectives::pass_of(layout, bytes / layout.smallest());
    std::vector<Round> rounds;
    int next = 0;
    for (int domain = 0; domain < layout.domains(); ++domain)
      next = direct_reduce_scatter(rounds, 0, members_of_domain(layout, domain, pass.part_bytes));
    reduce_between(rounds, next, pass);
    multicast_between(rounds, next + 1, pass);
    for (int domain = 0; domain < layout.domains(); ++domain)
      direct_all_gather(rounds, next + 2, members_of_domain(layout, domain, pass.part_bytes));
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Layout layout = checked(kind, group, 0);
    const int g = layout.smallest();
    const int blocks_inside = layout.mesh() && g > 1 ? 1 : g - 1;
    return {.rounds_intra = g > 1 ? 2 : 0, .rounds_network = 1, .intra_bytes = 2 * bytes * blocks_inside / g, .inter_bytes = bytes / g};
  }

 private:
  Layout checked(CollectiveKind kind, const GroupShape& group, int root) const {
    return collectives::served(*this, "collnet", kind, group, root,
                               "several domains with as many members each, on a network whose switches reduce",
                               "say so in the cluster: network.in_network; 'tree' and 'ring' serve every group");
  }
};

const CollectiveRegistry::Registration<CollNet> collnet_registration("collnet");

}  // namespace
}  // namespace rehearse::workloads
