// The ports that a transfer uses: one at either end, in a mesh the link between its members, one and
// those of the whole domain where the switch reduces or multicasts, the member's own NIC where the network does.
#pragma once

#include <compare>
#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::tests {

struct Port {
  enum class Kind { scale_up_out, scale_up_in, direct, nic_out, nic_in };
  Kind kind = Kind::scale_up_out;
  int domain = 0, local = 0;  // NIC: index of the rail; direct link: the two members
  auto operator<=>(const Port&) const = default;
  [[nodiscard]] bool nic() const { return kind == Kind::nic_out || kind == Kind::nic_in; }
};

class Ports {
 public:
  explicit Ports(const workloads::GroupShape& group);
  [[nodiscard]] bool crosses(const workloads::Transfer& t) const { return domain(t.from) != domain(t.to); }
  [[nodiscard]] std::vector<Port> of(const workloads::Transfer& t) const;

 private:
  [[nodiscard]] std::vector<Port> in_switch(const workloads::Transfer& t) const;
  [[nodiscard]] int domain(int member) const { return domain_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] int local(int member) const { return local_[static_cast<std::size_t>(member)]; }
  std::vector<int> domain_, local_;  // [member]
  bool mesh_ = false;
};

}  // namespace rehearse::tests
