// Who sends through which NIC, and what that leaves to each.
#include <algorithm>
#include <map>

#include "sim/cost/communication.hpp"
#include "workloads/collectives/layout.hpp"

namespace rehearse::sim {

using workloads::GroupKind;

namespace {

int way_out(int nic) { return 2 * nic; }
int way_in(int nic) { return 2 * nic + 1; }

}  // namespace

double CommunicationModel::nic_alone(double users) const { return cluster_.rail_bytes_per_s() / users; }

double CommunicationModel::nic_share(double users) const {
  const double to_nic = cluster_.to_nic_bytes_per_s();
  return to_nic > 0 ? std::min(nic_alone(users), to_nic) : nic_alone(users);
}

double CommunicationModel::network_share(double users, double factor) const {
  const double of_all = cluster_.rail_bytes_per_s() * cluster_.rails_per_node() / cluster_.gpus_per_node;
  return std::min(nic_share(users), of_all * factor);
}

void CommunicationModel::set_network_share(CallPrice& price, GroupKind kind, double factor) const {
  set_network_share(price, nic_users_[static_cast<std::size_t>(kind)], factor);
}

void CommunicationModel::set_network_share(CallPrice& price, const Busiest& users, double factor) const {
  price.inter_bytes_per_s = network_share(users.all, factor);
  // Trunks, too, have so many times less to carry.
  price.inter_alone_bytes_per_s = network_share(users.of_a_stage, factor * users.all / users.of_a_stage);
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

// Messages from each member to the next. Of a pipeline a GPU with a neighbour in another domain counts once: its activations go one way
// while gradients go the other.
void CommunicationModel::add_shifts(GroupKind kind, NicUsers& users) const {
  if (kind == GroupKind::pp) {
    for (int rank = 0; rank < grid_.size(); ++rank) {
      const int here = domain_of(rank);
      if (domain_of(grid_.next_stage(rank)) != here || domain_of(grid_.previous_stage(rank)) != here)
        ++users[{way_out(nic_of(rank)), grid_.coordinates(rank).pp}];
    }
    return;
  }
  const int rails = cluster_.rails_per_node();
  each_group(kind, [&](const std::vector<int>& members) {
    const int stage = grid_.coordinates(members.front()).pp;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int from = members[i], to = members[(i + 1) % members.size()];
      if (domain_of(from) == domain_of(to)) continue;
      ++users[{way_out(nic_of(from)), stage}];
      ++users[{way_in(node_of(to) * rails + nic_of(from) % rails), stage}];
    }
  });
}

// When all groups of this kind communicate at once: GPUs of the job whose group spans domains, and of each group as many per domain as have
// a channel of a ring or tree (experts: all). What leaves a domain comes in on the same rail (the engine's Wiring), one that both have
// where there are such. Nothing where nobody shares one.
CommunicationModel::NicUsers CommunicationModel::users_of_nics(GroupKind kind, bool shifts) const {
  NicUsers users;
  const int rails = cluster_.rails_per_node();
  if (rails == 0 || (rails == cluster_.gpus_per_node && groups_lie_alike_)) return users;  // every GPU has one
  if (shifts || kind == GroupKind::pp) {
    add_shifts(kind, users);
    return users;
  }
  each_group(kind, [&](const std::vector<int>& members) {
    const workloads::collectives::Layout layout(shape(members));
    if (layout.domains() < 2) return;
    const int stage = grid_.coordinates(members.front()).pp;  // of mirrored stages, which send at once, one stands for both
    const auto rank = [&](int position) { return members[static_cast<std::size_t>(layout.member(position))]; };
    for (int position = 0; kind == GroupKind::ep && position < layout.members(); ++position) {
      ++users[{way_out(nic_of(rank(position))), stage}];
      ++users[{way_in(nic_of(rank(position))), stage}];
    }
    for (int here = 0; kind != GroupKind::ep && here < layout.domains(); ++here) {
      const int next = (here + 1) % layout.domains();
      for (int channel = 0; channel < layout.smallest(); ++channel) {
        const int own = nic_of(rank(layout.leaving(here, next, channel)));
        ++users[{way_out(own), stage}];
        ++users[{way_in(node_of(rank(layout.first(next) + channel)) * rails + own % rails), stage}];
      }
    }
  });
  return users;
}

CommunicationModel::Busiest CommunicationModel::busiest_nic(const NicUsers& all) const {
  if (cluster_.rails_per_node() == 0) return {};
  std::map<int, int> of_nic;
  Busiest most{0, 0};
  for (const auto& [place, number] : all) {
    most.all = std::max<double>(most.all, of_nic[place.first] += number);
    most.of_a_stage = std::max<double>(most.of_a_stage, number);
  }
  const double even = static_cast<double>(cluster_.gpus_per_node) / cluster_.rails_per_node();
  return most.all > 0 ? most : Busiest{even, even};
}

// Of the way of a NIC on which most of all meet whom the stage's own meet: when replicas communicate, or where those share none, in the
// first kind of the units' own groups that do.
std::vector<double> CommunicationModel::users_by_stage(bool host) const {
  const int stages = stages_;
  if (stages == 1) return {};
  const auto shared = [&](const NicUsers& users) {
    std::map<int, int> of_place;
    for (const auto& [place, number] : users) of_place[place.first] += number;
    std::vector<double> all;
    bool share = false;
    for (int stage = 0; stage < stages; ++stage) {
      int busiest = -1;
      for (const auto& [place, number] : users) {
        if (place.second == stage && (busiest < 0 || of_place[place.first] > of_place[busiest])) busiest = place.first;
      }
      for (int other = 0; other < stages; ++other) {
        const auto found = users.find({busiest, other});
        all.push_back(found == users.end() ? 0 : found->second);
        share = share || (other != stage && all.back() > 0);
      }
    }
    return share ? all : std::vector<double>{};
  };
  if (host) {
    NicUsers on_hosts;
    for (int rank = 0; rank < grid_.size(); ++rank) ++on_hosts[{node_of(rank), grid_.coordinates(rank).pp}];
    return shared(on_hosts);
  }
  for (const GroupKind kind : {GroupKind::dp_cp, GroupKind::tp, GroupKind::cp, GroupKind::ep}) {
    std::vector<double> users = shared(users_of_nics(kind));
    if (!users.empty()) return users;
  }
  return {};
}

}  // namespace rehearse::sim
