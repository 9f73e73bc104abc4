#include "sim/serving/kv_alignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "config/quantity.hpp"

namespace rehearse::sim {
namespace {

bool is_at(const KvAlignmentWork& work, AlignAt at) {
  return (at == AlignAt::sender && work.sender_bytes_per_token > 0) || (at == AlignAt::receiver && work.receiver_bytes_per_token > 0) ||
         (at == AlignAt::host && work.host_bytes_per_token > 0);
}

}  // namespace

const config::Names<AlignAt>& align_names() {
  static const config::Names<AlignAt> names{
      {"auto", AlignAt::cheapest}, {"sender", AlignAt::sender}, {"receiver", AlignAt::receiver}, {"host", AlignAt::host}};
  return names;
}

double KvSide::moving_s(double bytes) const {
  if (bytes <= 0) return 0;
  workloads::Operator op;
  op.cls = workloads::OperatorClass::memory_bound;
  op.bytes = bytes;
  return gpu->cost->seconds(op);
}

double alignment_s(const KvAlignmentWork& work, const KvSide& sender, const KvSide& receiver) {
  const double host_s = work.host_bytes_per_token > 0 ? work.host_bytes_per_token / receiver.host_bytes_per_s : 0;
  return sender.moving_s(work.sender_bytes_per_token) + receiver.moving_s(work.receiver_bytes_per_token) + host_s;
}

std::vector<KvAlignmentWork> alignment_of(const KvSide& sender, const KvSide& receiver, AlignAt at) {
  std::vector<KvAlignmentWork> all;
  for (const std::string& name : KvAlignmentRegistry::names()) {
    std::vector<KvAlignmentWork> ways = KvAlignmentRegistry::get(name).ways(sender, receiver);
    if (ways.empty()) continue;
    const auto cost = [&](const KvAlignmentWork& work) {
      return std::tuple(!is_at(work, at), work.wire_share, alignment_s(work, sender, receiver));
    };
    all.push_back(std::move(*std::ranges::min_element(ways, {}, cost)));
  }
  return all;
}

std::vector<KvAlignmentWork> rewrites(const KvSide& sender, const KvSide& receiver, const std::string& reason) {
  std::vector<KvAlignmentWork> ways{{.receiver_bytes_per_token = 2 * receiver.bytes_per_token, .reason = reason + ", where it arrives"},
                                    {.sender_bytes_per_token = 2 * sender.bytes_per_token, .reason = reason + ", before it is sent"}};
  if (receiver.host_bytes_per_s > 0)
    ways.push_back({.host_bytes_per_token = 2 * receiver.bytes_per_token, .reason = reason + ", in the receiver's host"});
  return ways;
}

std::string text_of(const KvAlignmentWork& work) {
  const double bytes = work.sender_bytes_per_token + work.receiver_bytes_per_token + work.host_bytes_per_token;
  if (bytes <= 0) return work.reason;
  const std::string amount = config::human_quantity(bytes, config::Dimension::bytes);
  if (work.host_bytes_per_token > 0) return fmt::format("{} ({} of memory traffic a token there for each GPU)", work.reason, amount);
  return fmt::format("{} ({} of memory traffic a token on each GPU of the {})", work.reason, amount,
                     work.sender_bytes_per_token > 0 ? "sender" : "receiver");
}

}  // namespace rehearse::sim
