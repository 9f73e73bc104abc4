// All-reduces of inference engines inside one domain, by kernels that read the peers' memory. one-shot: every member reads the whole buffer
// of all others and adds for itself: one round, (n-1) buffers through its port (one, over links of a mesh). two-shot: it reads its part of
// all others, and then their sums: two rounds, `direct`'s all-reduce.
#include "workloads/collectives/layout.hpp"

namespace rehearse::workloads {
namespace {

using collectives::Layout;

class Shot : public Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::all_reduce; }
  [[nodiscard]] bool reads_peers() const override { return true; }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override { return supports(kind) && group.domains() == 1; }

 protected:
  // Throws InputError for a kind or a group that it does not serve.
  void check(const char* name, CollectiveKind kind, const GroupShape& group) const {
    if (!supports(kind)) collectives::refuse(name, kind);
    static_cast<void>(Layout(group));
    if (serves(kind, group)) return;
    throw config::InputError("collective '" + std::string(name) + "' stays inside one domain",
                             "the group has " + std::to_string(group.domains()) + " domains; 'ring' serves it");
  }
};

class OneShot final : public Shot {
 public:
  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    check("one-shot", kind, group);
    collectives::check_root(group, root);
    std::vector<Round> rounds(group.size > 1 ? 1 : 0);
    for (int shift = 1; shift < group.size; ++shift) {
      for (int from = 0; from < group.size; ++from) {
        rounds.front().transfers.push_back(
            {.from = from, .to = (from + shift) % group.size, .bytes = bytes, .first_block = 0, .blocks = group.size, .reduce = true});
      }
    }
    return rounds;
  }

  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    check("one-shot", kind, group);
    if (group.size == 1) return {};
    return {.rounds_intra = 1, .intra_bytes = bytes * (group.mesh ? 1 : group.size - 1)};
  }
};

class TwoShot final : public Shot {
 public:
  [[nodiscard]] std::vector<Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    check("two-shot", kind, group);
    return CollectiveRegistry::get("direct").rounds(kind, group, bytes, root);
  }
  [[nodiscard]] ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    check("two-shot", kind, group);
    return CollectiveRegistry::get("direct").closed_form(kind, group, bytes);
  }
};

const CollectiveRegistry::Registration<OneShot> one_shot_registration("one-shot");
const CollectiveRegistry::Registration<TwoShot> two_shot_registration("two-shot");

}  // namespace
}  // namespace rehearse::workloads
