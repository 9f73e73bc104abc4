// Number formats: what is converted before it is sent crosses the network as the receiver has it. In its host's memory it is converted
// before the way to the GPU, whose bytes are taken as those on the network (assumption).
#include <fmt/format.h>

#include "sim/serving/kv_alignment.hpp"
#include "workloads/serving/kv_layout.hpp"

namespace rehearse::sim {
namespace {

class NumberType final : public KvAlignment {
 public:
  [[nodiscard]] std::vector<KvAlignmentWork> ways(const KvSide& sender, const KvSide& receiver) const override {
    const workloads::DType from = sender.plan->precision.kv, to = receiver.plan->precision.kv;
    if (from == to) return {};
    const double share = bytes_of(to) / bytes_of(from);
    const std::string reason = fmt::format("{} is made {}", name_of(from), name_of(to));
    std::vector<KvAlignmentWork> ways{
        {.sender_bytes_per_token = (1 + share) * sender.bytes_per_token, .wire_share = share, .reason = reason + ", before it is sent"},
        {.receiver_bytes_per_token = (1 + 1 / share) * receiver.bytes_per_token, .reason = reason + ", where it arrives"}};
    if (receiver.host_bytes_per_s > 0)
      ways.push_back({.host_bytes_per_token = (1 + 1 / share) * receiver.bytes_per_token, .reason = reason + ", in the receiver's host"});
    return ways;
  }
};

const KvAlignmentRegistry::Registration<NumberType> number_type_registration("number-type");

}  // namespace
}  // namespace rehearse::sim
