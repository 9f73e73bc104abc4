// Where the members of a group sit, in the order in which the algorithms walk through them.
#pragma once

#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::workloads::collectives {

// Positions number the members domain by domain: domains by first appearance, members of a domain in group order.
class Layout {
 public:
  // Throws std::invalid_argument when the group has no members or does not say where each of them sits.
  explicit Layout(const GroupShape& group);

  [[nodiscard]] int members() const { return static_cast<int>(order_.size()); }
  [[nodiscard]] int domains() const { return static_cast<int>(first_.size()); }
  [[nodiscard]] int smallest() const { return smallest_; }  // members of the smallest domain
  [[nodiscard]] int largest() const { return largest_; }
  [[nodiscard]] bool uniform() const { return smallest_ == largest_; }
  [[nodiscard]] bool mesh() const { return mesh_; }  // direct links inside the domains

  [[nodiscard]] int member(int position) const { return order_[index(position)]; }
  [[nodiscard]] int position(int member) const { return position_[index(member)]; }
  [[nodiscard]] int domain(int position) const { return domain_[index(position)]; }  // 0..domains()-1
  [[nodiscard]] int first(int domain) const { return first_[index(domain)]; }        // position of its first member
  [[nodiscard]] int size(int domain) const { return size_[index(domain)]; }
  // Position of the member of `domain` over whose NIC a ring's channel leaves for `next`: of those that have a rail in common with a member
  // of `next` the channel's; of all where those are fewer than the channels. NCCL lays each end of a channel on a NIC near GPUs of the
  // group on its own node (inter of its graph, ncclTopoGetNetDev), and a transfer has one rail at both ends here.
  [[nodiscard]] int leaving(int domain, int next, int channel) const;
  [[nodiscard]] bool knows_rails() const { return !rail_.empty(); }
  [[nodiscard]] bool crosses(int from_position, int to_position) const { return domain(from_position) != domain(to_position); }

 private:
  static std::size_t index(int value) { return static_cast<std::size_t>(value); }

  std::vector<int> order_, position_, domain_, first_, size_, rail_;
  int smallest_ = 0, largest_ = 0;
  bool mesh_ = false;
};

struct Hop {
  int from = 0, to = 0;  // positions
};
[[nodiscard]] std::vector<Hop> backwards(std::vector<Hop> hops);

// When these hops are made at once, each between domains over the rail of its sender: the most of them that end at one NIC, 0 when none
// crosses. In uniform groups the partners of our algorithms are spread so that it is 1 at most; small domains may have to share a rail of a
// large one.
[[nodiscard]] int busiest_nic(const Layout& layout, const std::vector<Hop>& hops);

// Adds a round in which these hops are made, `bytes` each: on the scale-up ports when none crosses domains, otherwise on the NICs, the
// slower.
void add_round(ClosedForm& form, const Layout& layout, const std::vector<Hop>& hops, double bytes);

// Members of the group's smallest domain; all where there is one. What Layout says of it, without the rest.
[[nodiscard]] int smallest_domain(const GroupShape& group);

// Messages through a port at once when each member sends on as many channels as the smallest domain has members, an even part of `sent`
// bytes on each, and port_bytes pass the port; 1 in one domain.
[[nodiscard]] double messages_of_channels(const GroupShape& group, double sent, double port_bytes);

// Throws std::invalid_argument unless root is a member.
void check_root(const GroupShape& group, int root);

// Throws config::InputError "tree has no all-to-all".
[[noreturn]] void refuse(std::string_view algorithm, CollectiveKind kind);

// The layout of a group that the algorithm of this name serves. Throws as the two above, and config::InputError "collective 'nvls' needs
// ..." with what to do instead where it does not serve the group.
[[nodiscard]] Layout served(const Collective& algorithm, std::string_view name, CollectiveKind kind, const GroupShape& group, int root,
                            std::string_view needs, std::string_view instead);

}  // namespace rehearse::workloads::collectives
