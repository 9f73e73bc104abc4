// NCCL's NVLSTree: an all-reduce whose sums inside a domain are the NVLink switch's, with double binary trees between the domains, one pair
// per rail. All three at once, chunk by chunk.
#include <algorithm>

#include "workloads/collectives/in_switch.hpp"
#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/node_tree.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::NodeTree;
using collectives::SwitchPass;

// Up and down one tree on every rail.
void append_tree(std::vector<Round>& rounds, const Layout& layout, const NodeTree& tree, const SwitchPass& pass) {
  const int depth = tree.deepest();
  rounds.resize(std::max(rounds.size(), static_cast<std::size_t>(2 * depth + 1)));
  for (int domain = 0; domain < layout.domains(); ++domain) {
    const int level = tree.depth(domain);
    for (int local = 0; level > 0 && local < pass.locals; ++local) {
      Transfer transfer{.from = layout.member(layout.first(domain) + local),
                        .to = layout.member(layout.first(tree.parent(domain)) + local),
                        .bytes = pass.part_bytes,
                        .channel = pass.channel,
                        .first_block = local,
                        .blocks = layout.domains(),
                        .block_stride = pass.locals,
                        .reduce = true};
      rounds[static_cast<std::size_t>(1 + depth - level)].transfers.push_back(transfer);
      std::swap(transfer.from, transfer.to);
      transfer.reduce = false;
      rounds[static_cast<std::size_t>(depth + level)].transfers.push_back(transfer);
    }
  }
}

class NvlsTree final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override {
    return supports(kind) && group.switch_reduces && group.uniform() && group.domains() > 1;
  }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Layout layout = checked(kind, group, root);
    SwitchPass pass = collectives::pass_of(layout, bytes / (collectives::trees * layout.smallest()));
    std::vector<Round> rounds;
    for (const bool second : {false, true}) {
      const NodeTree tree(layout.domains(), second);
      pass.channel = second ? 1 : 0;
      reduce_in_switch(rounds, 0, pass);
      append_tree(rounds, layout, tree, pass);
      multicast_in_switch(rounds, 2 * collectives::tree_depth(layout.domains()) + 1, pass);
    }
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Layout layout = checked(kind, group, 0);
    const int g = layout.smallest();
    return {.rounds_inter = 2 * collectives::tree_depth(layout.domains()),
            .rounds_switch = 1,
            .intra_bytes = bytes * (1 + 1.0 / g),
            .inter_bytes = bytes / (collectives::trees * g) * collectives::most_neighbours(layout.domains())};
  }

 private:
  Layout checked(CollectiveKind kind, const GroupShape& group, int root) const {
    return collectives::served(*this, "nvls-tree", kind, group, root,
                               "several scale-up domains with as many members each, whose switches reduce",
                               "say so in the cluster: intra_node.in_network; 'tree' and 'ring' serve every group");
  }
};

const CollectiveRegistry::Registration<NvlsTree> nvls_tree_registration("nvls-tree");

}  // namespace
}  // namespace rehearse::workloads
