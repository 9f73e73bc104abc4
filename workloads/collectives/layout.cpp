#include "workloads/collectives/layout.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace rehearse::workloads::collectives {
namespace {

std::size_t index_of(int value) { return static_cast<std::size_t>(value); }

void check_shape(const GroupShape& group) {
  if (group.size < 1) throw std::invalid_argument("a group needs members");
  if (group.domain.size() != static_cast<std::size_t>(group.size)) throw std::invalid_argument("a group needs the domain of every member");
}

// [member] index of its domain in order of first appearance
std::vector<int> domains_by_appearance(const GroupShape& group) {
  int seen = 0;
  const auto numbered = [&](int domain) { return domain >= 0 && (domain < seen || domain == seen++); };
  if (std::ranges::all_of(group.domain, numbered)) return group.domain;
  std::vector<int> known = group.domain;
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::vector<int> number(known.size(), -1), domains;
  domains.reserve(group.domain.size());
  int next = 0;
  for (const int domain : group.domain) {
    int& own = number[static_cast<std::size_t>(std::ranges::lower_bound(known, domain) - known.begin())];
    if (own < 0) own = next++;
    domains.push_back(own);
  }
  return domains;
}

}  // namespace

Layout::Layout(const GroupShape& group) : rail_(group.rail), mesh_(group.mesh) {
  check_shape(group);
  const std::vector<int> domains = domains_by_appearance(group);
  size_.assign(index(*std::ranges::max_element(domains)) + 1, 0);
  for (const int domain : domains) ++size_[index(domain)];
  first_.assign(size_.size(), 0);
  std::partial_sum(size_.begin(), size_.end() - 1, first_.begin() + 1);
  std::vector<int> next = first_;
  position_.resize(index(group.size));
  order_.resize(index(group.size));
  domain_.resize(index(group.size));
  for (int member = 0; member < group.size; ++member) {
    const int position = next[index(domains[index(member)])]++;
    position_[index(member)] = position;
    order_[index(position)] = member;
    domain_[index(position)] = domains[index(member)];
  }
  smallest_ = *std::min_element(size_.begin(), size_.end());
  largest_ = *std::max_element(size_.begin(), size_.end());
}

int Layout::leaving(int domain, int next, int channel) const {
  const int all = first(domain) + channel;
  if (!knows_rails()) return all;
  const auto rail = [&](int position) { return rail_[index(member(position))]; };
  std::vector<int> there, shared;
  for (int position = first(next); position < first(next) + size(next); ++position) there.push_back(rail(position));
  for (int position = first(domain); position < first(domain) + size(domain); ++position) {
    if (std::ranges::find(there, rail(position)) != there.end()) shared.push_back(position);
  }
  return std::ssize(shared) < smallest_ ? all : shared[index(channel)];
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

int smallest_domain(const GroupShape& group) {
  std::vector<int> sizes;
  for (const int domain : group.domain) {
    if (index_of(domain) >= sizes.size()) sizes.resize(index_of(domain) + 1);
    ++sizes[index_of(domain)];
  }
  int smallest = group.size;
  for (const int size : sizes) smallest = size > 0 ? std::min(smallest, size) : smallest;
  return smallest;
}

double messages_of_channels(const GroupShape& group, double sent, double port_bytes) {
  const int smallest = smallest_domain(group);
  return smallest < group.size && sent > 0 ? std::max(1.0, smallest * port_bytes / sent) : 1;
}

void check_root(const GroupShape& group, int root) {
  if (root < 0 || root >= group.size) throw std::invalid_argument("the root is not a member of the group");
}

void refuse(std::string_view algorithm, CollectiveKind kind) {
  throw config::InputError("collective '" + std::string(algorithm) + "' has no " + std::string(name_of(kind)));
}

Layout served(const Collective& algorithm, std::string_view name, CollectiveKind kind, const GroupShape& group, int root,
              std::string_view needs, std::string_view instead) {
  if (!algorithm.supports(kind)) refuse(name, kind);
  check_root(group, root);
  Layout layout(group);
  if (!algorithm.serves(kind, group)) {
    throw config::InputError("collective '" + std::string(name) + "' needs " + std::string(needs), std::string(instead));
  }
  return layout;
}

}  // namespace rehearse::workloads::collectives
