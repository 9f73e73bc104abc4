#include "workloads/collectives/layout.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace rehearse::workloads::collectives {
namespace {

void check_shape(const GroupShape& group) {
  if (group.size < 1) throw std::invalid_argument("a group needs members");
  if (group.domain.size() != static_cast<std::size_t>(group.size)) throw std::invalid_argument("a group needs the domain of every member");
}

// [domain in order of first appearance] its members in group order
std::vector<std::vector<int>> members_by_domain(const GroupShape& group) {
  std::map<int, std::size_t> seen;
  std::vector<std::vector<int>> members;
  for (int member = 0; member < group.size; ++member) {
    const auto [entry, fresh] = seen.try_emplace(group.domain[static_cast<std::size_t>(member)], members.size());
    if (fresh) members.emplace_back();
    members[entry->second].push_back(member);
  }
  return members;
}

}  // namespace

Layout::Layout(const GroupShape& group) : mesh_(group.mesh) {
  check_shape(group);
  position_.resize(static_cast<std::size_t>(group.size));
  for (const auto& members : members_by_domain(group)) {
    first_.push_back(this->members());
    size_.push_back(static_cast<int>(members.size()));
    for (const int member : members) {
      position_[index(member)] = this->members();
      order_.push_back(member);
      domain_.push_back(domains() - 1);
    }
  }
  smallest_ = *std::min_element(size_.begin(), size_.end());
  largest_ = *std::max_element(size_.begin(), size_.end());
}

std::vector<Hop> backwards(std::vector<Hop> hops) {
  for (Hop& hop : hops) std::swap(hop.from, hop.to);
  return hops;
}

int busiest_nic(const Layout& layout, const std::vector<Hop>& hops) {
  std::vector<int> received(static_cast<std::size_t>(layout.domains()) * static_cast<std::size_t>(layout.largest()));  // [domain][rail]
  int most = 0;
  for (const auto& [from, to] : hops) {
    const int rail = from - layout.first(layout.domain(from));
    if (layout.crosses(from, to)) most = std::max(most, ++received[static_cast<std::size_t>(layout.domain(to) * layout.largest() + rail)]);
  }
  return most;
}

void add_round(ClosedForm& form, const Layout& layout, const std::vector<Hop>& hops, double bytes) {
  const int flows = busiest_nic(layout, hops);
  (flows > 0 ? form.rounds_inter : form.rounds_intra) += 1;
  (flows > 0 ? form.inter_bytes : form.intra_bytes) += std::max(flows, 1) * bytes;
}

void check_root(const GroupShape& group, int root) {
  if (root < 0 || root >= group.size) throw std::invalid_argument("the root is not a member of the group");
}

void refuse(std::string_view algorithm, CollectiveKind kind) {
  throw config::InputError("collective '" + std::string(algorithm) + "' has no " + std::string(name_of(kind)));
}

}  // namespace rehearse::workloads::collectives
