#include <algorithm>
#include <map>
#include <utility>

#include "workloads/collective.hpp"

namespace rehearse::workloads {
namespace {

// The last transfers of a member on a channel, by partner. Those before them with the same partner have ended earlier: a stream keeps its
// order.
using ByPartner = std::map<int, std::uint32_t>;
using Side = std::map<std::pair<int, int>, ByPartner>;  // (channel, member)

struct History {
  Side received, sent;

  void note(const Transfer& transfer, std::uint32_t id) {
    received[{transfer.channel, transfer.to}][transfer.from] = id;
    sent[{transfer.channel, transfer.from}][transfer.to] = id;
  }
};

void add_but(std::vector<std::uint32_t>& out, const ByPartner& transfers, int partner) {
  for (const auto& [other, id] : transfers) {
    if (other != partner) out.push_back(id);
  }
}

Dependency dependency_of(const Transfer& transfer, History& history) {
  constexpr int nobody = -1;
  Dependency out;
  const ByPartner& stream = history.sent[{transfer.channel, transfer.from}];
  add_but(out.before_alpha, history.received[{transfer.channel, transfer.from}], nobody);
  add_but(out.before_alpha, stream, transfer.to);
  add_but(out.before_alpha, history.received[{transfer.channel, transfer.to}], transfer.from);
  std::sort(out.before_alpha.begin(), out.before_alpha.end());
  if (const auto before = stream.find(transfer.to); before != stream.end()) out.before_bytes = before->second;
  return out;
}

}  // namespace

std::vector<Dependency> dependencies(std::span<const Round> rounds) {
  std::vector<Dependency> out;
  History history;
  for (const Round& round : rounds) {
    auto id = static_cast<std::uint32_t>(out.size());
    for (const Transfer& transfer : round.transfers) out.push_back(dependency_of(transfer, history));
    for (const Transfer& transfer : round.transfers) history.note(transfer, id++);
  }
  return out;
}

}  // namespace rehearse::workloads
