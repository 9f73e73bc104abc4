#include "sim/serving/kv_alignment.hpp"

#include <utility>

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
  const double at_sender = sender.moving_s(2 * sender.bytes_per_token), at_receiver = receiver.moving_s(2 * receiver.bytes_per_token);
  if (at_sender < at_receiver) return {at_sender, 0, std::move(reason) + ", before it is sent"};
  return {0, at_receiver, std::move(reason) + ", where it arrives"};
}

}  // namespace rehearse::sim
