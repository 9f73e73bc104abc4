// Who sends through which NIC, and what that leaves to each.
#include <algorithm>
#include <map>

#include "sim/cost/communication.hpp"

namespace rehearse::sim {

using workloads::GroupKind;

double CommunicationModel::nic_alone(double users) const { return cluster_.rail_bytes_per_s() / users; }

double CommunicationModel::nic_share(double users) const {
  return cluster_.pcie_bytes_per_s > 0 ? std::min(nic_alone(users), cluster_.pcie_bytes_per_s) : nic_alone(users);
}

double CommunicationModel::network_share(double users, double factor) const {
  const double of_all = cluster_.rail_bytes_per_s() * cluster_.rails_per_node() / cluster_.gpus_per_node;
  return std::min(nic_share(users), of_all * factor);
}

void CommunicationModel::set_network_share(CallPrice& price, GroupKind kind, double factor) const {
  const Busiest& users = nic_users_[static_cast<std::size_t>(kind)];
  price.inter_bytes_per_s = network_share(users.all, factor);
  price.inter_alone_bytes_per_s = network_share(users.of_a_stage, factor);
  price.nic_messages = users.all;
}

double CommunicationModel::left_of_nic(GroupKind kind, double slowdown) const {
  const double users = nic_users_[static_cast<std::size_t>(kind)].all;
  return std::min(1.0, nic_alone(users) / slowdown / nic_share(users));
}

int CommunicationModel::nic_of(int rank) const {
  const int gpus = cluster_.gpus_per_node, rails = cluster_.rails_per_node();
  return node_of(rank) * rails + rank % gpus * rails / gpus;
}

// When all groups of this kind communicate at once: GPUs of the job whose group spans domains, and of each group as many per domain as have
// a channel of a ring or tree (experts: all). Of a pipeline those with a neighbour in another domain: its activations go one way while
// gradients go the other.
CommunicationModel::NicUsers CommunicationModel::users_of_nics(GroupKind kind) const {
  NicUsers users;
  const auto add = [&](int rank, int stage) { ++users[{nic_of(rank), stage}]; };
  if (kind == GroupKind::pp) {
    for (int rank = 0; rank < grid_.size(); ++rank) {
      const int here = domain_of(rank);
      if (domain_of(grid_.next_stage(rank)) != here || domain_of(grid_.previous_stage(rank)) != here) add(rank, grid_.coordinates(rank).pp);
    }
    return users;
  }
  each_group(kind, [&](const std::vector<int>& members) {
    std::map<int, int> of_domain;
    for (const int rank : members) ++of_domain[domain_of(rank)];
    if (of_domain.size() < 2) return;
    int channels = static_cast<int>(members.size());
    for (const auto& [domain, size] : of_domain) channels = kind == GroupKind::ep ? channels : std::min(channels, size);
    for (auto& [domain, left] : of_domain) left = channels;
    const int stage = grid_.coordinates(members.front()).pp;  // of mirrored stages, which send at once, one stands for both
    for (const int rank : members) {
      if (of_domain[domain_of(rank)]-- > 0) add(rank, stage);
    }
  });
  return users;
}

CommunicationModel::Busiest CommunicationModel::busiest_nic(GroupKind kind) const {
  const int gpus = cluster_.gpus_per_node, rails = cluster_.rails_per_node();
  if (rails == 0 || rails == gpus) return {};
  std::map<int, int> of_nic;
  Busiest most{0, 0};
  for (const auto& [place, number] : users_of_nics(kind)) {
    most.all = std::max<double>(most.all, of_nic[place.first] += number);
    most.of_a_stage = std::max<double>(most.of_a_stage, number);
  }
  const double even = static_cast<double>(gpus) / rails;
  return most.all > 0 ? most : Busiest{even, even};
}

std::vector<double> CommunicationModel::users_by_stage(bool host) const {
  const int gpus = cluster_.gpus_per_node, rails = cluster_.rails_per_node(), stages = stages_;
  if (stages == 1 || (!host && (rails == 0 || rails == gpus))) return {};
  NicUsers users;
  for (int rank = 0; host && rank < grid_.size(); ++rank) ++users[{node_of(rank), grid_.coordinates(rank).pp}];
  if (!host) users = users_of_nics(GroupKind::dp_cp);
  std::vector<double> all;
  bool share = false;
  for (int stage = 0; stage < stages; ++stage) {
    const int first = grid_.rank({0, 0, 0, stage}), place = host ? node_of(first) : nic_of(first);
    for (int other = 0; other < stages; ++other) {
      const auto found = users.find({place, other});
      all.push_back(found == users.end() ? 0 : found->second);
      share = share || (other != stage && all.back() > 0);
    }
  }
  return share ? all : std::vector<double>{};
}

}  // namespace rehearse::sim
