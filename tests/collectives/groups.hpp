// Groups to try the algorithms on: how many members, and how they sit in domains.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "workloads/collective.hpp"

namespace rehearse::tests {

struct NamedGroup {
  std::string name;
  workloads::GroupShape shape;
};

inline workloads::GroupShape one_domain(int size) { return {.size = size, .domain = std::vector<int>(static_cast<std::size_t>(size), 0)}; }

// Adjacent members: sizes[d] of them in domain d.
inline workloads::GroupShape domains_of(const std::vector<int>& sizes) {
  workloads::GroupShape group{.size = std::accumulate(sizes.begin(), sizes.end(), 0), .domain = {}};
  for (std::size_t d = 0; d < sizes.size(); ++d)
    group.domain.insert(group.domain.end(), static_cast<std::size_t>(sizes[d]), static_cast<int>(d));
  return group;
}

inline workloads::GroupShape blocks(int domains, int per_domain) {
  return domains_of(std::vector<int>(static_cast<std::size_t>(domains), per_domain));
}

// Members dealt out like cards; domain numbers neither dense nor in order.
inline workloads::GroupShape dealt(int size, int domains) {
  workloads::GroupShape group{.size = size, .domain = {}};
  for (int member = 0; member < size; ++member) group.domain.push_back(100 - 7 * (member % domains));
  return group;
}

inline std::vector<int> up_to(int most) {
  std::vector<int> sizes(static_cast<std::size_t>(most));
  std::iota(sizes.begin(), sizes.end(), 1);
  return sizes;
}

inline std::vector<NamedGroup> groups_of(const std::vector<int>& members) {
  std::vector<NamedGroup> out;
  for (const int n : members) {
    out.push_back({"one domain of " + std::to_string(n), one_domain(n)});
    out.push_back({std::to_string(n) + " domains of 1", blocks(n, 1)});
    for (const int domains : {2, 3, 5, 8}) {
      if (n % domains == 0)
        out.push_back({std::to_string(domains) + " domains of " + std::to_string(n / domains), blocks(domains, n / domains)});
      if (n >= domains) out.push_back({std::to_string(n) + " dealt to " + std::to_string(domains), dealt(n, domains)});
    }
  }
  for (const auto& sizes : std::vector<std::vector<int>>{{1, 2}, {3, 1}, {2, 2, 3}, {4, 1, 1}, {8, 8, 5}, {1, 7, 1, 7}, {16, 2, 16}})
    out.push_back({"uneven domains, " + std::to_string(sizes.size()), domains_of(sizes)});
  return out;
}

// Every size up to one above a power of two; of the larger ones, whose rounds grow with the third power, two beside a power of two and one
// with many divisors.
inline std::vector<NamedGroup> many_groups() {
  std::vector<int> members = up_to(33);
  for (const int large : {48, 63, 64}) members.push_back(large);
  return groups_of(members);
}
inline std::vector<NamedGroup> small_groups() { return groups_of(up_to(24)); }

inline std::vector<workloads::CollectiveKind> all_kinds() {
  using enum workloads::CollectiveKind;
  return {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv};
}

inline bool serves(const std::string& algorithm, workloads::CollectiveKind kind, const workloads::GroupShape& group) {
  return workloads::CollectiveRegistry::get(algorithm).serves(kind, group);
}

// The same groups with direct links inside their domains.
inline std::vector<NamedGroup> meshes(std::vector<NamedGroup> groups) {
  for (NamedGroup& group : groups) {
    group.name += ", meshes";
    group.shape.mesh = true;
  }
  return groups;
}

// The same groups with switches that reduce.
inline std::vector<NamedGroup> with_reducing_switches(std::vector<NamedGroup> groups) {
  for (NamedGroup& group : groups) {
    group.name += ", switches that reduce";
    group.shape.switch_reduces = true;
  }
  return groups;
}

// The same groups on a network whose switches reduce, with and without switches that do inside the domains.
inline std::vector<NamedGroup> with_reducing_networks(std::vector<NamedGroup> groups) {
  for (NamedGroup& group : with_reducing_switches(groups)) groups.push_back(group);
  for (NamedGroup& group : groups) {
    group.name += ", a network that reduces";
    group.shape.network_reduces = true;
  }
  return groups;
}

inline std::vector<NamedGroup> tori() {
  std::vector<NamedGroup> out;
  for (const auto& sizes :
       std::vector<std::vector<int>>{{2}, {3}, {8}, {2, 2}, {4, 4}, {3, 5}, {2, 8}, {3, 3, 3}, {4, 2, 3}, {4, 4, 4}, {2, 3, 2, 2}}) {
    NamedGroup& torus = out.emplace_back();
    torus.name = "torus";
    int members = 1;
    for (const int size : sizes) {
      members *= size;
      torus.name += " " + std::to_string(size);
    }
    torus.shape = blocks(members, 1);
    torus.shape.torus = sizes;
  }
  return out;
}

}  // namespace rehearse::tests
