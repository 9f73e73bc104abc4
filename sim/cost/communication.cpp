#include "sim/cost/communication.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using topology::LinkSpec;
using topology::Network;
using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;
using workloads::GroupShape;

// More for each member of a domain in every call of HybridEP: least squares over what its rates called from PyTorch leave on 8 to 36 GB200
// (32 SMs; deepseek-ai/DeepEP, branch hybrid-ep, docs/README_Hybrid-EP.md) beside the bytes, the weights and a copy of what arrives or
// leaves at 5.46 TB/s (the same, pull request 605): 22 to 38 us dispatching, 6 to 152 combining (tests/experts/hybridep_test.cpp).
constexpr double hybridep_member_s = 2.3e-6;

// Mostly the last. Adds what is not there.
int index_of(std::vector<int>& known, int domain) {
  for (std::size_t i = known.size(); i-- > 0;) {
    if (known[i] == domain) return static_cast<int>(i);
  }
  known.push_back(domain);
  return static_cast<int>(known.size()) - 1;
}

// Dense and expert dimensions, in the order in which ranks are counted. last_may_lack: ranks, which the last dimension has not enough of.
bool blocks_fit(const workloads::Parallel& p, int domain, bool last_may_lack = false) {
  const int all = p.tp * p.cp * p.dp * p.pp;
  const int edp = p.expert_replicas();
  const std::map<std::string_view, int> dense{{"tp", p.tp}, {"cp", p.cp}, {"dp", p.dp}, {"pp", p.pp}},
      of_experts{{"tp", p.etp}, {"ep", p.ep}, {"dp", edp}, {"pp", p.pp}};
  for (const auto& sizes : {dense, of_experts}) {
    int block = 1;
    for (const std::string& name : p.order) {
      const auto size = sizes.find(name);
      if (size == sizes.end()) continue;
      block *= size->second;
      if (domain % block != 0 && block % domain != 0 && !(last_may_lack && block == all)) return false;
    }
  }
  return true;
}

// Of an exchange: what the fullest NIC has to carry for each of the members on it, for each byte of the busiest port of all. 1 where no two
// of them share one; other groups' members on it are taken to have as much.
template <class NicOf>
double part_in_nics(const workloads::PortLoads& loads, std::span<const int> members, const NicOf& nic_of) {
  struct Nic {
    double out = 0, in = 0;
    int members = 0;
  };
  std::map<int, Nic> nics;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Nic& nic = nics[nic_of(members[i])];
    nic.out += loads.inter_out[i];
    nic.in += loads.inter_in[i];
    ++nic.members;
  }
  double part = 0;
  for (const auto& [number, nic] : nics) part = std::max(part, std::max(nic.out, nic.in) / nic.members / loads.most_inter());
  return part;
}

}  // namespace

CommunicationModel::CommunicationModel(const topology::ClusterSpec& cluster, const workloads::Workload& workload, std::string algorithm,
                                       std::vector<std::string> library, bool by_rounds, topology::Protocol protocol)
    : cluster_(cluster),
      grid_(workloads::rank_grid(workload)),
      groups_lie_alike_(blocks_fit(workload.parallel, cluster.gpus_per_node) && blocks_fit(workload.parallel, cluster.domain_gpus())),
      algorithm_(std::move(algorithm)),
      library_(std::move(library)),
      by_rounds_(by_rounds),
      protocol_(protocol),
      stages_(workload.parallel.pp),
      cables_(Cables::of(cluster, grid_.size())) {
  const topology::NetworkSpec& network = cluster_.network;
  const auto add_level = [&](int nodes, double oversubscription) {
    levels_.push_back({nodes, oversubscription, groups_lie_alike_ && blocks_fit(workload.parallel, nodes * cluster_.gpus_per_node, true)});
  };
  if (network.nodes_per_leaf > 0 && network.oversubscription > 1) add_level(network.nodes_per_leaf, network.oversubscription);
  if (network.nodes_per_pod > 0 && network.pod_oversubscription > 1)
    add_level(network.nodes_per_pod, network.oversubscription * network.pod_oversubscription);
  list_shares(workload);
}

// They follow from how the ranks lie, and variants of a job, which lie alike, are priced one after the other: those of the last model that
// a thread made are kept.
void CommunicationModel::list_shares(const workloads::Workload& workload) {
  const workloads::Parallel& p = workload.parallel;
  const int mirrors = workloads::ScheduleRegistry::get(workload.schedule).mirrors() ? 1 : 0;
  std::vector<double> place;
  for (const int number : {p.tp, p.cp, p.pp, p.dp, p.ep, p.etp, workload.optimizer.shard_group, mirrors, cluster_.domain_gpus(),
                           cluster_.gpus_per_node, cluster_.rails_per_node()}) {
    place.push_back(number);
  }
  for (const Level& level : levels_) place.insert(place.end(), {static_cast<double>(level.nodes), level.oversubscription});
  place.push_back(cluster_.network.in_switch.bandwidth_bytes_per_s > 0 ? 1 : 0);
  struct Known {
    std::vector<double> place;
    std::vector<std::string> order;
    std::vector<Busiest> nic_users;
    Busiest shifting_nic_users;
    double shifting_trunk_factor = 1;
    std::vector<double> stages_at_nics, trunk_factor, reduced_factor;
  };
  thread_local Known known;
  if (known.place != place || known.order != p.order) {
    known = {place, p.order, {}, {}, trunk_factor(GroupKind::cp, Crossing::shifts), users_by_stage(false), {}, {}};
    known.shifting_nic_users = busiest_nic(users_of_nics(GroupKind::cp, true));
    for (int number = 0; number < workloads::network_group_kinds; ++number) {
      const auto kind = static_cast<GroupKind>(number);
      known.nic_users.push_back(busiest_nic(users_of_nics(kind)));
      known.trunk_factor.push_back(trunk_factor(kind, Crossing::channels));
      if (known.place.back() > 0) known.reduced_factor.push_back(trunk_factor(kind, Crossing::reduced));
    }
  }
  if (cables_) {
    const workloads::PipelineShape shape = workloads::pipeline_shape(workload);
    const workloads::Schedule& schedule = workloads::ScheduleRegistry::get(workload.schedule);
    pipeline_wraps_ = shape.chunks > 1 && schedule.location(shape, 0, shape.stages).stage == 0;
    place_ = fmt::format("{} {} {}", place, p.order, pipeline_wraps_);
  }
  nic_users_ = known.nic_users;
  shifting_nic_users_ = known.shifting_nic_users;
  shifting_trunk_factor_ = known.shifting_trunk_factor;
  stages_at_nics_ = known.stages_at_nics;
  trunk_factor_ = known.trunk_factor;
  reduced_factor_ = known.reduced_factor;
}

GroupShape CommunicationModel::shape(std::span<const int> members) const {
  GroupShape group;
  group.size = static_cast<int>(members.size());
  group.mesh = cluster_.intra_kind == topology::IntraNode::full_mesh && &scale_up(members) == &cluster_.intra;
  group.switch_reduces = cluster_.in_switch.bandwidth_bytes_per_s > 0;
  group.network_reduces = cluster_.network.in_switch.bandwidth_bytes_per_s > 0;
  for (const std::size_t axis : axes_of(members)) group.torus.push_back(cluster_.network.dims[axis]);
  group.domain.reserve(members.size());
  std::vector<int> known;  // in order of first appearance, which is mostly that of their numbers
  int largest = -1;
  for (const int rank : members) {
    const int domain = domain_of(rank);
    if (domain > largest) known.push_back(largest = domain);
    group.domain.push_back(index_of(known, domain));
  }
  if (!groups_lie_alike_ && cluster_.rails_per_node() > 0 && cluster_.domain_gpus() == cluster_.gpus_per_node) {
    for (const int rank : members) group.rail.push_back(nic_of(rank) % cluster_.rails_per_node());
  }
  return group;
}

bool CommunicationModel::sit_alike(int one, int other) const {
  const auto sharers = [&](int rank) {
    return std::pair(host_sharers(GroupKind::to_host, rank), host_sharers(GroupKind::host_memory, rank));
  };
  return (one - other) % cluster_.domain_gpus() == 0 && sharers(one) == sharers(other);
}

std::size_t CommunicationModel::levels_between(int from, int to) const {
  if (node_of(from) == node_of(to)) return 0;
  return domain_of(from) == domain_of(to) ? 1 : 2;
}

double CommunicationModel::latency_s(int from, int to, bool reads, topology::Protocol protocol) const {
  if (from == to) return 0;
  const bool inside = domain_of(from) == domain_of(to);
  const LinkSpec& link = node_of(from) == node_of(to) ? cluster_.intra : inside ? cluster_.supernode : cluster_.nic;
  // A call by a protocol that a node's own links do not list is one of its supernode.
  for (const LinkSpec* its : {&link, inside ? &cluster_.supernode : &link}) {
    if (its->by(protocol)) return its->by(protocol)->latency_s;
  }
  return link.round_s(reads && inside);
}

// The axes of a torus that members in order of their nodes fill, each a ring; none when there is more or less than one box of them.
std::vector<std::size_t> CommunicationModel::axes_of(std::span<const int> members) const {
  const topology::NetworkSpec& network = cluster_.network;
  if (network.kind != Network::torus || cluster_.domain_gpus() > 1 || !std::ranges::is_sorted(members)) return {};
  std::vector<std::size_t> axes;
  std::int64_t all = 1;
  int stride = cluster_.nodes;
  for (std::size_t axis = 0; axis < network.dims.size(); ++axis) {
    const int size = network.dims[axis];
    stride /= size;
    const auto place = [&](int rank) { return rank / stride % size; };
    if (std::ranges::all_of(members, [&](int rank) { return place(rank) == place(members.front()); })) continue;
    if (!network.wrap[axis] && size > 2) return {};
    axes.push_back(axis);
    all *= size;
  }
  return all == static_cast<std::int64_t>(members.size()) ? axes : std::vector<std::size_t>{};
}

CallPrice CommunicationModel::price_shift(const Communication& what, std::span<const int> members) const {
  CallPrice price;
  price.kind = CallKind::send;
  price.algorithm = "send";
  price.intra_bytes_per_s = scale_up(members).effective_bytes_per_s();
  if (what.group == GroupKind::pp) {
    set_network_share(price, what.group, trunk_factor_[static_cast<std::size_t>(what.group)]);
  } else if (what.group == GroupKind::cp) {
    set_network_share(price, shifting_nic_users_, shifting_trunk_factor_);
  } else {  // send-recv alone
    set_network_share(price, busiest_nic(users_of_nics(what.group, true)), trunk_factor(what.group, Crossing::shifts));
  }
  const std::size_t hops = members.size() == 2 && what.group == GroupKind::pp ? 1 : members.size();
  for (std::size_t i = 0; i < hops; ++i) {
    const int from = members[i];
    const int to = members[(i + 1) % members.size()];
    price.alpha_s = std::max(price.alpha_s, latency_s(from, to));
    (domain_of(from) == domain_of(to) ? price.intra_bytes : price.inter_bytes) = what.bytes;
  }
  let_cables_limit(price, what, members);
  if (one_port()) price.limit_network(price.intra_bytes_per_s);  // a message is one or the other
  return price;
}

workloads::PortLoads CommunicationModel::loads(const Communication& what, std::span<const int> members) const {
  return workloads::port_loads(*what.exchange, shape(members));
}

// Everybody sends to everybody at once: the busiest port of any member decides. Alpha is that of the farthest pair, or when a counterpart
// passes tokens on, of both ways one after the other (the bytes follow one another without waiting).
CallPrice CommunicationModel::price_exchange(const Communication& what, std::span<const int> members) const {
  const workloads::PortLoads loads = this->loads(what, members);
  const LinkSpec& intra = scale_up(members);
  CallPrice price;
  price.kind = loads.forwards ? CallKind::forwarded : CallKind::exchange;
  price.algorithm = loads.forwards ? "hierarchical" : "pairwise";
  price.intra_bytes = loads.most_intra();
  price.inter_bytes = loads.most_inter();
  price.intra_bytes_per_s = intra.effective_bytes_per_s();
  const double part = part_in_trunks(loads, members);
  const Busiest& users = nic_users_[static_cast<std::size_t>(what.group)];
  const bool by_nics = cluster_.rails_per_node() > 0 && loads.most_inter() > 0;
  const double of_nic = by_nics ? part_in_nics(loads, members, [this](int rank) { return nic_of(rank); }) : 1;
  set_network_share(price, {users.all * of_nic, users.of_a_stage * of_nic}, trunk_factor_[static_cast<std::size_t>(what.group)] / part);
  price.nic_messages = users.all;
  let_cables_limit(price, what, members);
  for (std::size_t i = 0; one_port() && i < members.size(); ++i) {
    const double out = loads.intra_out[i] + loads.inter_out[i], in = loads.intra_in[i] + loads.inter_in[i];
    price.passing_bytes = std::max(price.passing_bytes, std::max(out, in) - price.intra_bytes);
  }
  if (!one_port()) price.nic_overhead = 1 / cluster_.nic.exchange_share;
  price.inter_bytes *= price.nic_overhead;
  if (!what.exchange->hierarchical) price.scale_up_overhead = 1 / intra.exchange_share;  // otherwise by kernels of their own
  price.intra_bytes *= price.scale_up_overhead;
  if (price.inter_bytes > 0) price.alpha_s = cluster_.nic.latency_s;
  if (price.inter_bytes <= 0 || loads.forwards) price.alpha_s += intra.latency_s;
  if (price.inter_bytes <= 0 && !what.exchange->hierarchical) price.alpha_s += intra.exchange_wait_s();
  if (price.inter_bytes > 0 && loads.forwards) price.alpha_s += cluster_.dispatch_s;
  if (what.exchange->slower_with_members)
    price.alpha_s += hybridep_member_s * static_cast<double>(members.size()) / shape(members).domains();
  return price;
}

CallPrice CommunicationModel::price_with(const std::string& algorithm, const Communication& what, const GroupShape& group,
                                         std::span<const int> members) const {
  const workloads::Collective& collective = workloads::CollectiveRegistry::get(algorithm);
  const workloads::ClosedForm form = collective.closed_form(what.kind, group, what.bytes);
  const LinkSpec& intra = scale_up(members);
  CallPrice price;
  price.kind = CallKind::collective;
  price.algorithm = algorithm;
  price.collective = &collective;
  price.alpha_s = form.rounds_switch * cluster_.in_switch.latency_s;
  if (form.rounds_switch > 0) price.switch_overhead = intra.effective_bytes_per_s() / cluster_.in_switch.effective_bytes_per_s();
  if (what.kind == CollectiveKind::all_to_all) price.scale_up_overhead = 1 / intra.exchange_share;
  price.intra_bytes = form.intra_bytes * price.switch_overhead * price.scale_up_overhead;
  price.inter_bytes = form.inter_bytes;
  price.intra_bytes_per_s = intra.effective_bytes_per_s();
  set_network_share(price, what.group, trunk_factor_[static_cast<std::size_t>(what.group)]);
  if (form.rounds_network > 0) {
    const LinkSpec& in_network = cluster_.network.in_switch;
    price.alpha_s += form.rounds_network * in_network.latency_s;
    price.network_overhead = cluster_.nic.effective_bytes_per_s() / in_network.effective_bytes_per_s();
    price.inter_bytes *= price.network_overhead;
    set_network_share(price, what.group, reduced_factor_[static_cast<std::size_t>(what.group)]);
  }
  if (one_port())
    price.passing_bytes = std::clamp(collective.most_sent(what.kind, group, what.bytes) - form.intra_bytes, 0.0, price.inter_bytes);
  price.messages = collective.messages_at_once(what.kind, group, what.bytes, price.intra_bytes + price.passing_bytes);
  if (form.rounds_switch == 0) let_both_fabrics_limit(price, what, group, members);
  let_cables_limit(price, what, members);
  const std::vector<std::size_t> axes = form.axis_bytes.empty() ? std::vector<std::size_t>{} : axes_of(members);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double axis_s = form.axis_bytes[i] / cluster_.network.axes[axes[i]].effective_bytes_per_s();
    if (axis_s > 0) price.limit_network(price.inter_bytes / axis_s);
  }
  price.sequential = form.sequential;
  return with_protocol(price, form, what.kind, intra);
}

CallPrice CommunicationModel::price(const Communication& what, std::span<const int> members) const {
  if (static_cast<int>(what.group) >= workloads::network_group_kinds) return price_copy(what, members.front());
  const bool alone = std::ranges::all_of(members, [&](int rank) { return rank == members.front(); });
  if (members.size() < 2 || alone) return {};
  if (what.kind == CollectiveKind::send_recv) return price_shift(what, members);
  if (what.exchange) return price_exchange(what, members);
  const GroupShape group = shape(members);
  if (algorithm_ != "auto" && workloads::CollectiveRegistry::get(algorithm_).serves(what.kind, group)) {
    return price_with(algorithm_, what, group, members);
  }
  std::optional<CallPrice> best;
  for (const std::string& name : library_) {
    if (!workloads::CollectiveRegistry::get(name).fits(what.kind, group)) continue;
    CallPrice price = price_with(name, what, group, members);
    if (!best || better(price, *best)) best = std::move(price);
  }
  return best.value();
}

}  // namespace rehearse::sim
