// NCCL's PXN (PCI x NVLink, since 2.12): an all-to-all over several nodes whose blocks go over NVLink to the GPU on the destination's rail
// first, and from there over its NIC to the destination, those of all GPUs of a node in one message. Chunk by chunk, both at once.
// NVIDIA, "Doubling all2all Performance with NVIDIA Collective Communication Library 2.12".
#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;

// To local member l+shift of one's own domain: the blocks for all members of that local index.
Round to_rails(const Layout& layout, double bytes, int shift) {
  const int n = layout.members(), g = layout.smallest();
  Round round;
  for (int from = 0; from < n; ++from) {
    const int rail = (from % g + shift) % g;
    round.transfers.push_back({.from = layout.member(from),
                               .to = layout.member(from - from % g + rail),
                               .bytes = bytes / g,
                               .first_block = from * n + rail,
                               .blocks = layout.domains(),
                               .block_stride = g});
  }
  return round;
}

// To the counterpart in domain d+shift: what the members of one's own domain have for it.
Round along_rails(const Layout& layout, double bytes, int shift) {
  const int n = layout.members(), g = layout.smallest();
  Round round;
  for (int from = 0; from < n; ++from) {
    const int to = (from + shift * g) % n;
    round.transfers.push_back({.from = layout.member(from),
                               .to = layout.member(to),
                               .bytes = bytes / layout.domains(),
                               .first_block = (from - from % g) * n + to,
                               .blocks = g,
                               .block_stride = n});
  }
  return round;
}

class Pxn final : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_to_all; }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override {
    return supports(kind) && group.uniform() && !group.mesh && group.domains() > 1 && group.size > group.domains();
  }
  [[nodiscard]] Pace pace(CollectiveKind, const GroupShape&) const override { return Pace::chunks; }

  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    const Layout layout = checked(kind, group, root);
    std::vector<Round> rounds;
    for (int shift = 1; shift < layout.smallest(); ++shift) rounds.push_back(to_rails(layout, bytes, shift));
    for (int shift = 1; shift < layout.domains(); ++shift) rounds.push_back(along_rails(layout, bytes, shift));
    return rounds;
  }

  // Of g members in each of D domains: what is for other rails through the scale-up port, what is for other domains through the NIC.
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    const Layout layout = checked(kind, group, 0);
    const int g = layout.smallest(), d = layout.domains();
    return {.rounds_intra = g - 1, .rounds_inter = d - 1, .intra_bytes = bytes * (g - 1) / g, .inter_bytes = bytes * (d - 1) / d};
  }

 private:
  Layout checked(CollectiveKind kind, const GroupShape& group, int root) const {
    return collectives::served(*this, "pxn", kind, group, root, "several scale-up domains, switched, with as many members each",
                               "'ring' and 'hierarchical' serve every group");
  }
};

const CollectiveRegistry::Registration<Pxn> pxn_registration("pxn");

}  // namespace
}  // namespace rehearse::workloads
