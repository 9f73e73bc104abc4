#include "workloads/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace rehearse::workloads {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

PortLoads nothing(std::size_t members) {
  const std::vector<double> zeros(members, 0.0);
  return {zeros, zeros, zeros, zeros, false};
}

PortLoads back(PortLoads loads) {
  std::swap(loads.intra_out, loads.intra_in);
  std::swap(loads.inter_out, loads.inter_in);
  return loads;
}

// What passes inside the domains: on a switch through the port of either end, in a mesh through the link between them, of which the busiest
// counts.
class Inside {
 public:
  Inside(PortLoads& loads, bool mesh) : loads_(loads), mesh_(mesh) {}
  void add(int from, int to, double bytes) {
    if (!mesh_) {
      loads_.intra_out[from] += bytes;
      loads_.intra_in[to] += bytes;
      return;
    }
    const double link = links_[{from, to}] += bytes;
    loads_.intra_out[from] = std::max(loads_.intra_out[from], link);
    loads_.intra_in[to] = std::max(loads_.intra_in[to], link);
  }

 private:
  PortLoads& loads_;
  bool mesh_;
  std::map<std::pair<int, int>, double> links_;
};

PortLoads pair_by_pair(const Exchange& exchange, const GroupShape& group) {
  const int n = exchange.members();
  PortLoads loads = nothing(n);
  Inside inside(loads, group.mesh);
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from == to) continue;
      const double bytes = exchange.pairs_of(from, to) * exchange.bytes_per_pair;
      if (group.domain[from] == group.domain[to]) {
        inside.add(from, to, bytes);
        continue;
      }
      loads.inter_out[from] += bytes;
      loads.inter_in[to] += bytes;
    }
  }
  return loads;
}

std::vector<double> per_domain(const std::vector<double>& values, const GroupShape& group) {
  std::vector<double> sums(group.domains(), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) sums[group.domain[i]] += values[i];
  return sums;
}

PortLoads all_alike(const Exchange& exchange, const GroupShape& group) {
  const int n = exchange.members();
  std::vector<double> to = exchange.pairs;
  for (double& pairs : to) pairs *= exchange.bytes_per_pair;
  const double everything = sum(to);
  const std::vector<double> into = per_domain(to, group);
  const std::vector<double> sizes = per_domain(std::vector<double>(n, 1.0), group);
  PortLoads loads = nothing(n);
  for (int i = 0; i < n; ++i) {
    const int domain = group.domain[i];
    loads.intra_out[i] = into[domain] - to[i];
    loads.inter_out[i] = everything - into[domain];
    loads.intra_in[i] = (sizes[domain] - 1) * to[i];
    loads.inter_in[i] = (n - sizes[domain]) * to[i];
  }
  return loads;
}

// Shares of a member's pairs that go to each.
std::vector<double> shares_of(std::span<const double> row) {
  const double pairs = std::accumulate(row.begin(), row.end(), 0.0);
  std::vector<double> shares;
  for (const double to : row) shares.push_back(pairs > 0 ? to / pairs : 0);
  return shares;
}

// Probability that a token enters each domain, when its experts lie in at most domains_per_token of them.
std::vector<double> entered(const Exchange& exchange, const std::vector<double>& share) {
  std::vector<double> hit;
  for (const double part : share) hit.push_back(1 - missed(part, exchange.top_k, exchange.experts));
  const auto domains = static_cast<double>(share.size());
  const int most = exchange.domains_per_token;
  if (most == 0 || most >= static_cast<int>(share.size())) return hit;
  // Even routing: it chooses among the experts of `most` domains, each of which has 1/most of them.
  const double allowed = most * (1 - missed(1.0 / most, exchange.top_k, exchange.experts * most / domains));
  const double factor = std::min(1.0, allowed / sum(hit));
  for (double& probability : hit) probability *= factor;
  return hit;
}

// Of a token's copy.
double copy_bytes(const Exchange& exchange, const GroupShape& group) {
  return exchange.bytes_per_pair + exchange.bytes_per_expert * exchange.experts / group.domains();
}

PortLoads over_counterparts(const Exchange& exchange, const GroupShape& group) {
  const int n = exchange.members();
  const double pairs = sum(exchange.pairs);
  if (pairs <= 0) return nothing(n);
  const double token_bytes = pairs / exchange.top_k * copy_bytes(exchange, group);  // of all tokens of a member, once
  std::vector<double> share, copy;                                                  // copy: bytes of a member's tokens that reach a rank
  for (const double to : exchange.pairs) {
    share.push_back(to / pairs);
    copy.push_back(token_bytes * (1 - missed(to / pairs, exchange.top_k, exchange.experts)));
  }
  const std::vector<double> across = entered(exchange, per_domain(share, group));
  const std::vector<double> inside = per_domain(copy, group);
  const double all_across = sum(across);
  const auto domains = static_cast<double>(group.domains());
  PortLoads loads = nothing(n);
  loads.forwards = group.domains() > 1;
  for (int i = 0; i < n; ++i) {
    const int domain = group.domain[i];
    loads.inter_out[i] = token_bytes * (all_across - across[domain]);
    loads.inter_in[i] = token_bytes * (domains - 1) * across[domain];
    loads.intra_out[i] = domains * (inside[domain] - copy[i]);
    loads.intra_in[i] = (n - domains) * copy[i];
  }
  return loads;
}

// The same of members that differ, each by its own row. A member's counterparts have its place in the other domains.
PortLoads over_counterparts_by_row(const Exchange& exchange, const GroupShape& group) {
  const int n = exchange.members(), domains = group.domains();
  std::vector<std::vector<int>> members(static_cast<std::size_t>(domains));
  std::vector<std::size_t> place;
  for (int i = 0; i < n; ++i) {
    std::vector<int>& own = members[group.domain[i]];
    place.push_back(own.size());
    own.push_back(i);
  }
  PortLoads loads = nothing(n);
  Inside inside(loads, group.mesh);
  loads.forwards = domains > 1;
  for (int from = 0; from < n; ++from) {
    std::vector<double> row;
    for (int to = 0; to < n; ++to) row.push_back(exchange.pairs_of(from, to));
    const double token_bytes = std::accumulate(row.begin(), row.end(), 0.0) / exchange.top_k * copy_bytes(exchange, group);
    const std::vector<double> share = shares_of(row), across = entered(exchange, per_domain(share, group));
    for (int domain = 0; domain < domains; ++domain) {
      const int enters = members[domain][place[from]];  // passes on what is for its domain
      if (enters != from) {
        loads.inter_out[from] += token_bytes * across[domain];
        loads.inter_in[enters] += token_bytes * across[domain];
      }
      for (const int to : members[domain]) {
        if (to == enters) continue;
        inside.add(enters, to, token_bytes * (1 - missed(share[to], exchange.top_k, exchange.experts)));
      }
    }
  }
  return loads;
}

// Every member's row written out.
Exchange by_row(const Exchange& alike) {
  std::vector<double> rows;
  for (int member = 0; member < alike.members(); ++member) rows.insert(rows.end(), alike.pairs.begin(), alike.pairs.end());
  Exchange full = alike;
  full.by_sender = std::make_shared<const std::vector<double>>(std::move(rows));
  return full;
}

PortLoads forward_loads(const Exchange& exchange, const GroupShape& group) {
  if (group.mesh && !exchange.by_sender) return forward_loads(by_row(exchange), group);
  const bool counterparts = exchange.hierarchical && group.uniform();
  if (exchange.by_sender) return counterparts ? over_counterparts_by_row(exchange, group) : pair_by_pair(exchange, group);
  return counterparts ? over_counterparts(exchange, group) : all_alike(exchange, group);
}

}  // namespace

int Exchange::members() const {
  return by_sender ? static_cast<int>(std::lround(std::sqrt(static_cast<double>(by_sender->size())))) : static_cast<int>(pairs.size());
}

double Exchange::bytes(int from, int to) const {
  if (reversed) std::swap(from, to);
  return pairs_of(from, to) * bytes_per_pair;
}

double PortLoads::most_intra() const { return std::max(*std::ranges::max_element(intra_out), *std::ranges::max_element(intra_in)); }
double PortLoads::most_inter() const { return std::max(*std::ranges::max_element(inter_out), *std::ranges::max_element(inter_in)); }

PortLoads port_loads(const Exchange& exchange, const GroupShape& group) {
  PortLoads loads = forward_loads(exchange, group);
  return exchange.reversed ? back(std::move(loads)) : loads;
}

double missed(double share, int top_k, double experts) {
  double probability = 1;
  for (int i = 0; i < top_k; ++i) probability *= std::max(0.0, 1 - share * experts / (experts - i));
  return probability;
}

}  // namespace rehearse::workloads
