// NCCL's tree: an all-reduce in small chunks up and down two binary trees over the domains, each for half of the buffer, with a chain
// through the members of every domain. Channel k hangs on local member k of the domains and on its NIC, as the ring's channels do.
#include <algorithm>

#include "workloads/collectives/layout.hpp"
#include "workloads/collectives/node_tree.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;
using collectives::NodeTree;

// One channel on one of the trees.
class Walk {
 public:
  Walk(const Layout& layout, int channel, bool second, double bytes)
      : layout_(layout),
        tree_(layout.domains(), second),
        entry_(channel),
        proto_{.bytes = bytes, .channel = collectives::trees * channel + (second ? 1 : 0), .first_block = 0, .blocks = layout.members()} {}

  void append(std::vector<Round>& rounds) const {
    const int chain = layout_.largest() - 1, depth = tree_.deepest();
    rounds.resize(std::max(rounds.size(), static_cast<std::size_t>(2 * (chain + depth))));
    for (int hop = 1; hop <= chain; ++hop) along_chains(rounds, chain - hop, chain + 2 * depth + hop - 1, hop);
    for (int level = 1; level <= depth; ++level) over_tree(rounds, chain + depth - level, chain + depth + level - 1, level);
  }

 private:
  // Member `hop` places behind the entry and the one before it: up in round `up`, down in round `down`.
  void along_chains(std::vector<Round>& rounds, int up, int down, int hop) const {
    for (int domain = 0; domain < layout_.domains(); ++domain) {
      if (hop < layout_.size(domain)) there_and_back(rounds, up, down, behind(domain, hop), behind(domain, hop - 1));
    }
  }

  void over_tree(std::vector<Round>& rounds, int up, int down, int level) const {
    for (int domain = 0; domain < layout_.domains(); ++domain) {
      if (tree_.depth(domain) == level) there_and_back(rounds, up, down, behind(domain, 0), behind(tree_.parent(domain), 0));
    }
  }

  void there_and_back(std::vector<Round>& rounds, int up, int down, int lower, int upper) const {
    Transfer transfer = proto_;
    transfer.from = lower;
    transfer.to = upper;
    transfer.reduce = true;
    rounds[static_cast<std::size_t>(up)].transfers.push_back(transfer);
    std::swap(transfer.from, transfer.to);
    transfer.reduce = false;
    rounds[static_cast<std::size_t>(down)].transfers.push_back(transfer);
  }

  [[nodiscard]] int behind(int domain, int hops) const {
    return layout_.member(layout_.first(domain) + (entry_ + hops) % layout_.size(domain));
  }

  const Layout& layout_;
  NodeTree tree_;
  int entry_;
  Transfer proto_;
};

// Of the 2C loads (up and down on C channels) of a member, one is missing where it heads a chain and one where it ends one. A direct link
// carries one direction of every channel but the one that begins behind it; between two members that one goes the other way.
double busiest_inside(const Layout& layout) {
  const int channels = layout.smallest(), longer = layout.largest() - channels;
  if (layout.largest() == 1) return 0;
  if (layout.mesh()) return longer > 0 || channels == 2 ? 1 : (channels - 1.0) / channels;
  return (2.0 * channels - std::max(0, 2 - longer)) / channels;
}

class Tree final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  [[nodiscard]] bool runs_by_protocols(CollectiveKind) const override { return true; }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }
  [[nodiscard]] double messages_at_once(CollectiveKind, const GroupShape& group, double bytes, double port_bytes) const override {
    return collectives::messages_of_channels(group, bytes, port_bytes);
  }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    if (!supports(kind)) collectives::refuse("tree", kind);
    collectives::check_root(group, root);
    const Layout layout(group);
    std::vector<Round> rounds;
    const double part = bytes / (collectives::trees * layout.smallest());
    for (int channel = 0; channel < layout.smallest(); ++channel) {
      for (const bool second : {false, true}) Walk(layout, channel, second, part).append(rounds);
    }
    return rounds;
  }

  // To the root and back: the chain and the tree, twice. Every edge of a tree carries its half of a channel's share up and down.
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    if (!supports(kind)) collectives::refuse("tree", kind);
    const Layout layout(group);
    const double per_neighbour = bytes / (collectives::trees * layout.smallest());
    return {.rounds_intra = 2 * (layout.largest() - 1),
            .rounds_inter = 2 * collectives::tree_depth(layout.domains()),
            .intra_bytes = bytes * busiest_inside(layout),
            .inter_bytes = per_neighbour * collectives::most_neighbours(layout.domains())};
  }
};

const CollectiveRegistry::Registration<Tree> tree_registration("tree");

}  // namespace
}  // namespace rehearse::workloads
