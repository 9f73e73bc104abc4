#include "sim/cost/call_price.hpp"

#include <algorithm>

namespace rehearse::sim {

std::string_view CallPrice::protocol_name() const {
  if (kind != CallKind::collective) return "";
  if (protocol == topology::Protocol::ll) return "LL";
  return protocol == topology::Protocol::ll128 ? "LL128" : "Simple";
}

double CallPrice::transfer_s() const {
  if (host_bytes > 0) return host_bytes / host_bytes_per_s;
  const double intra = intra_bytes > 0 ? intra_bytes / intra_bytes_per_s : 0;
  const double inter = inter_bytes > 0 ? inter_bytes / inter_bytes_per_s : 0;
  const double passing = passing_bytes > 0 ? passing_bytes / intra_bytes_per_s : 0;
  return sequential ? intra + std::max(inter, passing) : std::max(intra + passing, inter);
}

PortTimes CallPrice::ports() const {
  const double scale_up = intra_bytes + passing_bytes > 0 ? (intra_bytes + passing_bytes) / intra_bytes_per_s : 0;
  const double nic = inter_bytes > 0 ? inter_bytes / inter_bytes_per_s : 0;
  return {transfer_s(), scale_up, nic, messages * scale_up, nic_messages * nic};
}

void CallPrice::weigh(std::vector<workloads::Transfer>& transfers, const workloads::GroupShape& group) const {
  const auto domain = [&](int member) { return group.domain[static_cast<std::size_t>(member)]; };
  for (workloads::Transfer& each : transfers) {
    if (each.in_switch != workloads::InSwitch::nothing)
      each.bytes *= workloads::between_domains(each.in_switch) ? network_overhead : switch_overhead;
    else
      each.bytes *= domain(each.from) == domain(each.to) ? scale_up_overhead : nic_overhead;
  }
}

CallPrice CallPrice::alone() const {
  CallPrice price = *this;
  if (inter_alone_bytes_per_s > 0) price.inter_bytes_per_s = inter_alone_bytes_per_s;
  if (host_alone_bytes_per_s > 0) price.host_bytes_per_s = host_alone_bytes_per_s;
  return price;
}

}  // namespace rehearse::sim
