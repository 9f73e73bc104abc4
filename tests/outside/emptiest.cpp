// A router of these tests: least-kv by another name, with all that it says of itself.
#include "sim/serving/router.hpp"

namespace rehearse::tests {
namespace {

class Emptiest final : public sim::RequestRouter {
 public:
  [[nodiscard]] sim::GoesBy goes_by() const override { return least_kv().goes_by(); }
  [[nodiscard]] std::size_t choose(const std::vector<sim::Instance*>& instances, sim::RouterMemory& memory, sim::RequestId request,
                                   double now_s) const override {
    return least_kv().choose(instances, memory, request, now_s);
  }

 private:
  static const sim::RequestRouter& least_kv() { return sim::RouterRegistry::get("least-kv"); }
};

const sim::RouterRegistry::Registration<Emptiest> emptiest_registration("emptiest");

}  // namespace
}  // namespace rehearse::tests
