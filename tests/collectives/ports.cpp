#include "ports.hpp"

#include <map>

namespace rehearse::tests {

Ports::Ports(const workloads::GroupShape& group) : domain_(group.domain), mesh_(group.mesh) {
  std::map<int, int> seen;
  for (const int domain : domain_) local_.push_back(seen[domain]++);
}

// Between domains the NICs of one rail are used at both ends.
std::vector<Port> Ports::of(const workloads::Transfer& t) const {
  if (t.in_switch != workloads::InSwitch::nothing) return in_switch(t);
  if (!crosses(t) && mesh_) return {Port{Port::Kind::direct, t.from, t.to}};
  if (!crosses(t))
    return {Port{Port::Kind::scale_up_out, domain(t.from), local(t.from)}, Port{Port::Kind::scale_up_in, domain(t.to), local(t.to)}};
  const int rail = local(t.rail_of < 0 ? t.from : t.rail_of);
  return {Port{Port::Kind::nic_out, domain(t.from), rail}, Port{Port::Kind::nic_in, domain(t.to), rail}};
}

std::vector<Port> Ports::in_switch(const workloads::Transfer& t) const {
  using enum Port::Kind;
  if (t.in_switch == workloads::InSwitch::reduction_between) return {{nic_out, domain(t.from), local(t.from)}};
  if (t.in_switch == workloads::InSwitch::multicast_between) return {{nic_in, domain(t.to), local(t.to)}};
  const bool reduction = t.in_switch == workloads::InSwitch::reduction;
  std::vector<Port> ports{{reduction ? scale_up_in : scale_up_out, domain(t.to), local(t.to)}};
  for (int member = 0; member < static_cast<int>(domain_.size()); ++member) {
    if (domain(member) == domain(t.to)) ports.push_back({reduction ? scale_up_out : scale_up_in, domain(member), local(member)});
  }
  return ports;
}

}  // namespace rehearse::tests
