// A collective of these tests: the root sends the buffer to one member after another, as a parameter server would.
#include "workloads/collective.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;
using workloads::GroupShape;

class Star final : public workloads::Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return kind == CollectiveKind::broadcast; }
  [[nodiscard]] bool serves(CollectiveKind kind, const GroupShape& group) const override { return supports(kind) && group.domains() == 1; }
  [[nodiscard]] std::vector<workloads::Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    check(kind, group);
    std::vector<workloads::Round> rounds;
    for (int to = 0; to < group.size; ++to) {
      if (to != root) rounds.push_back({{{.from = root, .to = to, .bytes = bytes, .first_block = 0, .blocks = group.size}}});
    }
    return rounds;
  }
  [[nodiscard]] workloads::ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    check(kind, group);
    return {.rounds_intra = group.size - 1, .intra_bytes = (group.size - 1) * bytes};
  }

 private:
  void check(CollectiveKind kind, const GroupShape& group) const {
    if (!serves(kind, group)) throw config::InputError("star is for broadcasts in one domain");
  }
};

const workloads::CollectiveRegistry::Registration<Star> star_registration("star");

}  // namespace
}  // namespace rehearse::tests
