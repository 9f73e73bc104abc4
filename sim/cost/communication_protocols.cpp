// Rings and trees by NCCL's protocols: which is the fastest for a call, and what it costs.
#include <algorithm>

#include "sim/cost/communication.hpp"

namespace rehearse::sim {

using topology::LinkSpec;
using topology::Protocol;

namespace {

// Flags take half of the bytes of LL and 8 of 128 of LL128, however slow the link.
double counts_for(const LinkSpec& link, Protocol protocol) {
  const double least = protocol == Protocol::ll ? 2 : 128.0 / 120;
  return std::max(least, link.efficiency / link.by(protocol)->efficiency);
}

}  // namespace

std::optional<CommunicationModel::ByProtocol> CommunicationModel::by_protocol(Protocol protocol, const workloads::ClosedForm& form,
                                                                              const LinkSpec& intra) const {
  ByProtocol out;
  const auto add = [&](const LinkSpec& link, double& round_s, double& overhead) {
    if (!link.by(protocol)) return false;
    out.call_s = std::max(out.call_s, link.by(protocol)->call_s);
    round_s = link.by(protocol)->latency_s;
    overhead = counts_for(link, protocol);
    return true;
  };
  if (form.rounds_intra > 0 && !add(intra, out.intra_round_s, out.intra_overhead)) return std::nullopt;
  if (form.rounds_inter > 0 && !add(cluster_.nic, out.inter_round_s, out.inter_overhead)) return std::nullopt;
  return out;
}

// One that was asked for goes before all others.
bool CommunicationModel::better(const CallPrice& one, const CallPrice& other) const {
  const bool asked = one.protocol == protocol_, other_asked = other.protocol == protocol_;
  return asked != other_asked ? asked : one.seconds() < other.seconds();
}

CallPrice CommunicationModel::with_protocol(const CallPrice& price, const workloads::ClosedForm& form, workloads::CollectiveKind kind,
                                            const LinkSpec& intra) const {
  const auto with = [&](Protocol protocol, const ByProtocol& by) {
    CallPrice one = price;
    one.protocol = protocol;
    one.call_s = by.call_s;
    one.scale_up_overhead *= by.intra_overhead;
    one.nic_overhead = by.inter_overhead;
    one.intra_bytes *= by.intra_overhead;
    one.inter_bytes *= by.inter_overhead;
    one.alpha_s += by.call_s + form.rounds_intra * by.intra_round_s + form.rounds_inter * by.inter_round_s;
    if (!by_rounds_ || form.hops_inside <= 0) return one;
    const double intra_s = (one.intra_bytes + one.passing_bytes) / one.intra_bytes_per_s, transfer_s = one.transfer_s();
    const double inter_s = std::max(one.inter_bytes / one.inter_bytes_per_s, one.passing_bytes > 0 ? intra_s : 0);
    one.alpha_s = by.call_s + workloads::stream_s(form, by.intra_round_s, by.inter_round_s, intra_s, inter_s) - transfer_s;
    return one;
  };
  const bool exchanges_inside = kind == workloads::CollectiveKind::all_to_all && form.rounds_inter == 0;
  CallPrice best = with(Protocol::simple, {.call_s = exchanges_inside ? intra.exchange_wait_s() : 0,
                                           .intra_round_s = intra.round_s(price.collective->reads_peers()),
                                           .inter_round_s = cluster_.nic.latency_s});
  if (!price.collective->runs_by_protocols(kind)) return best;
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128}) {
    if (protocol_ != Protocol::automatic && protocol_ != protocol) continue;
    const std::optional<ByProtocol> by = by_protocol(protocol, form, intra);
    if (!by) continue;
    CallPrice one = with(protocol, *by);
    if (better(one, best)) best = std::move(one);
  }
  return best;
}

}  // namespace rehearse::sim
