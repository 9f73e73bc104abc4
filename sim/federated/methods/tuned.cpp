#include "sim/federated/methods.hpp"

namespace rehearse::federated {
namespace {

class Tuned final : public Method {
 public:
  [[nodiscard]] int place() const override { return 0; }
  [[nodiscard]] std::vector<MethodRow> rows(const Job& job, const MethodOptions& /*options*/) const override {
    return {row_of(job, "tuned", "tuned", "tuned", tuned_plan(job))};
  }
};
const MethodRegistry::Registration<Tuned> tuned_registration("tuned");

}  // namespace
}  // namespace rehearse::federated
