// A collective of these tests: the ring by another name, with all that it says of itself.
#include "workloads/collective.hpp"

namespace rehearse::tests {
namespace {

using workloads::CollectiveKind;
using workloads::GroupShape;

class Hoop final : public workloads::Collective {
 public:
  [[nodiscard]] bool supports(CollectiveKind kind) const override { return ring().supports(kind); }
  [[nodiscard]] workloads::Pace pace(CollectiveKind kind, const GroupShape& group) const override { return ring().pace(kind, group); }
  [[nodiscard]] bool rotates(CollectiveKind kind, const GroupShape& group) const override { return ring().rotates(kind, group); }
  [[nodiscard]] bool laps(CollectiveKind kind) const override { return ring().laps(kind); }
  [[nodiscard]] double most_sent(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    return ring().most_sent(kind, group, bytes);
  }
  [[nodiscard]] double messages_at_once(CollectiveKind kind, const GroupShape& group, double bytes, double port_bytes) const override {
    return ring().messages_at_once(kind, group, bytes, port_bytes);
  }
  [[nodiscard]] std::vector<workloads::Round> rounds(CollectiveKind kind, const GroupShape& group, double bytes, int root) const override {
    return ring().rounds(kind, group, bytes, root);
  }
  [[nodiscard]] workloads::ClosedForm closed_form(CollectiveKind kind, const GroupShape& group, double bytes) const override {
    return ring().closed_form(kind, group, bytes);
  }

 private:
  static const workloads::Collective& ring() { return workloads::CollectiveRegistry::get("ring"); }
};

const workloads::CollectiveRegistry::Registration<Hoop> hoop_registration("hoop");

}  // namespace
}  // namespace rehearse::tests
