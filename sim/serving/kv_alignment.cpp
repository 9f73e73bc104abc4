#include "sim/serving/kv_alignment.hpp"

#include <fmt/format.h>

#include <utility>

#include "config/quantity.hpp"

namespace rehearse::sim {

double KvSide::moving_s(double bytes) const {
  workloads::Operator op;
  op.cls = workloads::OperatorClass::memory_bound;
  op.bytes = bytes;
  return gpu->cost->seconds(op);
}

std::vector<KvAlignmentWork> alignment_of(const KvSide& sender, const KvSide& receiver) {
  std::vector<KvAlignmentWork> all;
  for (const std::string& name : KvAlignmentRegistry::names()) {
    if (auto work = KvAlignmentRegistry::get(name).work(sender, receiver)) all.push_back(std::move(*work));
  }
  return all;
}

KvAlignmentWork rewrite(const KvSide& sender, const KvSide& receiver, std::string reason) {
  const double at_sender = 2 * sender.bytes_per_token, at_receiver = 2 * receiver.bytes_per_token;
  if (sender.moving_s(at_sender) < receiver.moving_s(at_receiver)) return {at_sender, 0, std::move(reason) + ", before it is sent"};
  return {0, at_receiver, std::move(reason) + ", where it arrives"};
}

std::string text_of(const KvAlignmentWork& work) {
  const double bytes = work.sender_bytes_per_token + work.receiver_bytes_per_token;
  if (bytes <= 0) return work.reason;
  return fmt::format("{} ({} of memory traffic a token on each GPU of the {})", work.reason,
                     config::human_quantity(bytes, config::Dimension::bytes), work.sender_bytes_per_token > 0 ? "sender" : "receiver");
}

}  // namespace rehearse::sim
