// NCCL's NVLS over several domains with SHARP between them: sums inside a domain are the NVLink switch's, sums between domains the network
// switches'. All at once, chunk by chunk.
#include "workloads/collectives/in_switch.hpp"
#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::SwitchPass;

class NvlsSharp final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override {
    return supports(kind) && group.switch_reduces && group.network_reduces && group.uniform() && group.domains() > 1;
  }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Layout layout = checked(kind, group, root);
    const SwitchPass pass = collectives::pass_of(layout, bytes / layout.smallest());
    std::vector<Round> rounds;
    reduce_in_switch(rounds, 0, pass);
    reduce_between(rounds, 1, pass);
    multicast_between(rounds, 2, pass);
    multicast_in_switch(rounds, 3, pass);
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const int g = checked(kind, group, 0).smallest();
    return {.rounds_switch = 1, .rounds_network = 1, .intra_bytes = bytes * (1 + 1.0 / g), .inter_bytes = bytes / g};
  }

 private:
  Layout checked(CollectiveKind kind, const GroupShape& group, int root) const {
    return collectives::served(
        *this, "nvls-sharp", kind, group, root,
        "several scale-up domains with as many members each, whose switches reduce, and a network whose switches do too",
        "say so in the cluster: intra_node.in_network and network.in_network");
  }
};

const CollectiveRegistry::Registration<NvlsSharp> nvls_sharp_registration("nvls-sharp");

}  // namespace
}  // namespace rehearse::workloads
