// Number formats: converted before it is sent where that makes it smaller, else where it arrives.
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {
namespace {

class NumberType final : public KvAlignment {
 public:
  [[nodiscard]] std::optional<KvAlignmentWork> work(const KvSide& sender, const KvSide& receiver) const override {
    const workloads::DType from = sender.plan->precision.kv, to = receiver.plan->precision.kv;
    if (from == to) return std::nullopt;
    const double share = bytes_of(to) / bytes_of(from);
    const std::string reason = fmt::format("{} is made {}", name_of(from), name_of(to));
    if (share < 1) return KvAlignmentWork{(1 + share) * sender.bytes_per_token, 0, reason + ", before it is sent"};
    return KvAlignmentWork{0, (1 + 1 / share) * receiver.bytes_per_token, reason + ", where it arrives"};
  }
};

const KvAlignmentRegistry::Registration<NumberType> number_type_registration("number-type");

}  // namespace
}  // namespace rehearse::sim
