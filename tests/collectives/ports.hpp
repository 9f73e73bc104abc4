// The two ports that a transfer uses.
#pragma once

#include <array>
#include <compare>
#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::tests {

struct Port {
  enum class Kind { scale_up_out, scale_up_in, nic_out, nic_in };
  Kind kind = Kind::scale_up_out;
  int domain = 0, local = 0;  // NIC: index of the rail
  auto operator<=>(const Port&) const = default;
  [[nodiscard]] bool nic() const { return kind == Kind::nic_out || kind == Kind::nic_in; }
};

class Ports {
 public:
  explicit Ports(const workloads::GroupShape& group);
  [[nodiscard]] bool crosses(const workloads::Transfer& t) const { return domain(t.from) != domain(t.to); }
  [[nodiscard]] std::array<Port, 2> of(const workloads::Transfer& t) const;

 private:
  [[nodiscard]] int domain(int member) const { return domain_[static_cast<std::size_t>(member)]; }
  [[nodiscard]] int local(int member) const { return local_[static_cast<std::size_t>(member)]; }
  std::vector<int> domain_, local_;  // [member]
};

}  // namespace rehearse::tests
