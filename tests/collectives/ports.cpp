#include "ports.hpp"

#include <map>

namespace rehearse::tests {

Ports::Ports(const workloads::GroupShape& group) : domain_(group.domain) {
  std::map<int, int> seen;
  for (const int domain : domain_) local_.push_back(seen[domain]++);
}

// Between domains the NICs of one rail are used at both ends.
std::array<Port, 2> Ports::of(const workloads::Transfer& t) const {
  if (!crosses(t))
    return {Port{Port::Kind::scale_up_out, domain(t.from), local(t.from)}, Port{Port::Kind::scale_up_in, domain(t.to), local(t.to)}};
  const int rail = local(t.rail_of < 0 ? t.from : t.rail_of);
  return {Port{Port::Kind::nic_out, domain(t.from), rail}, Port{Port::Kind::nic_in, domain(t.to), rail}};
}

}  // namespace rehearse::tests
