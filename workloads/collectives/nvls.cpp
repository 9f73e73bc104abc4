// NCCL's NVLS: the NVLink switch reduces and multicasts (NVLink SHARP, since Hopper). A member sends the whole buffer once to be summed up
// and gets its share of the sum, then sends that once and gets everybody's: (1 + 1/n) S each way for an all-reduce, half of it for the
// others.
#include "workloads/collectives/in_switch.hpp"
#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::SwitchPass;

class Nvls final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override {
    return kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter;
  }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override {
    return supports(kind) && group.switch_reduces && group.domains() == 1;
  }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Layout layout = checked(kind, group, root);
    std::vector<Round> rounds;
    if (layout.members() == 1) return rounds;
    const SwitchPass pass = collectives::pass_of(layout, bytes / layout.members());
    if (kind != CollectiveKind::all_gather) reduce_in_switch(rounds, 0, pass);
    if (kind != CollectiveKind::reduce_scatter) multicast_in_switch(rounds, static_cast<int>(rounds.size()), pass);
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const int n = checked(kind, group, 0).members();
    if (n == 1) return {};
    return {.rounds_switch = 1, .intra_bytes = kind == CollectiveKind::all_reduce ? bytes * (1 + 1.0 / n) : bytes};
  }

 private:
  Layout checked(CollectiveKind kind, const GroupShape& group, int root) const {
    return collectives::served(*this, "nvls", kind, group, root, "one scale-up domain whose switch reduces",
                               "say so in the cluster: intra_node.in_network; 'nvls-tree' serves several domains");
  }
};

const CollectiveRegistry::Registration<Nvls> nvls_registration("nvls");

}  // namespace
}  // namespace rehearse::workloads
