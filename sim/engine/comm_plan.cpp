#include "sim/engine/comm_plan.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "workloads/collective.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::GroupKind;
using workloads::Round;
using workloads::Transfer;

// A ring shift: everybody sends to the next member; two ranks of a pipeline: the first to the second.
Round shift_round(const std::vector<int>& members, double bytes, bool one_way) {
  Round round;
  const int n = static_cast<int>(members.size());
  for (int i = 0; i < (one_way ? 1 : n); ++i) round.transfers.push_back({.from = i, .to = (i + 1) % n, .bytes = bytes});
  return round;
}

bool one_way(const workloads::Call& call) { return call.what.group == GroupKind::pp; }

}  // namespace

CommPlanner::CommPlanner(const Job& job, const CommunicationModel& model, const workloads::StepGraph& graph,
                         const workloads::Folding& folding, const Prices& prices, Machine& machine, std::span<const HostIndex> hosts)
    : job_(job), model_(model), graph_(graph), folding_(folding), prices_(prices), machine_(machine), hosts_(hosts) {}

std::vector<CommPlan> CommPlanner::plans() {
  std::vector<CommPlan> all;
  for (std::uint32_t call = 0; call < graph_.calls.size(); ++call) all.push_back(plan(call));
  return all;
}

CommPlan CommPlanner::plan(std::uint32_t call) {
  if (prices_.calls[call].algorithm == "copy") return plan_copy(call);
  const bool tensor = graph_.calls[call].what.group == GroupKind::tp;
  switch (job_.simulation.collectives) {
    case Fidelity::closed:
      return plan_closed(call);
    case Fidelity::step:
      return plan_transfers(call, true);
    // Tensor-parallel collectives have their scale-up ports to themselves: nothing to gain from flows.
    case Fidelity::automatic:
      if (tensor) return plan_closed(call);
      break;
    case Fidelity::ring:
      break;
  }
  if (graph_.calls[call].what.exchange) return port_by_port(call);
  return job_.simulation.all_ranks ? plan_transfers(call, false) : plan_folded(call);
}

void CommPlanner::add_leg(CommPlan& plan, double delay_s, double bytes, HostIndex from, HostIndex to, std::vector<LinkIndex> links) const {
  Leg leg{delay_s, bytes, from, to, static_cast<std::uint32_t>(plan.links.size()), static_cast<std::uint32_t>(links.size()), 0, {}};
  plan.links.insert(plan.links.end(), links.begin(), links.end());
  plan.legs.push_back(std::move(leg));
}

// One timed activity: a private link of the rate that makes the closed form's time.
CommPlan CommPlanner::plan_closed(std::uint32_t call) {
  const CallPrice& price = prices_.calls[call];
  const int repeat = graph_.calls[call].repeat;
  const HostIndex host = host_of(graph_.groups[graph_.calls[call].group].members.front());
  CommPlan plan;
  const double bytes = price.intra_bytes + price.inter_bytes;
  if (bytes > 0) {
    const PortKind kind = price.inter_bytes > 0 ? PortKind::nic : PortKind::scale_up;
    const LinkIndex link = own_link(graph_.groups[graph_.calls[call].group].members.front(), kind, bytes / price.transfer_s());
    add_leg(plan, price.alpha_s * repeat, bytes * repeat, host, host, {link});
  } else {
    add_leg(plan, price.alpha_s * repeat, 0, host, host, {});
  }
  return plan;
}

// A copy between a GPU and its host, or a pass over the host's memory.
CommPlan CommPlanner::plan_copy(std::uint32_t call) {
  const CallPrice& price = prices_.calls[call];
  const GroupKind kind = graph_.calls[call].what.group;
  const int rank = folding_.ranks[folding_.class_of[members_of(call).front()]].rank;
  std::vector<LinkIndex> links;
  if (price.intra_bytes == 0) {
    links.assign(host_load(rank, kind), host_link(rank, kind));
  } else if (job_.simulation.all_ranks) {
    const topology::LinkId link = kind == GroupKind::to_host ? fabric().device_to_host(rank) : fabric().host_to_device(rank);
    links.push_back(fabric_link(link, price.intra_bytes_per_s));
    note_port(folding_.class_of[rank], PortKind::scale_up, links.back(), price.intra_bytes_per_s);
  } else {
    links.push_back(port(rank, PortKind::scale_up, kind == GroupKind::to_host));
  }
  CommPlan plan;
  const int repeat = graph_.calls[call].repeat;
  add_leg(plan, price.alpha_s * repeat, (price.intra_bytes + price.host_bytes) * repeat, host_of(rank), host_of(rank), std::move(links));
  return plan;
}

// How often a simulated rank loads its link to the host: for itself and for each GPU on that link that is not simulated there.
int CommPlanner::host_load(int rank, GroupKind kind) const {
  const int first = model_.first_host_sharer(kind, rank);
  int load = 0;
  for (int sharer = first; sharer < first + model_.host_sharers(kind, rank); ++sharer) {
    const int simulated = folding_.ranks[folding_.class_of[sharer]].rank;
    if (simulated == rank || model_.first_host_sharer(kind, simulated) != first) ++load;
  }
  return load;
}

// Of all GPUs that share it.
LinkIndex CommPlanner::host_link(int rank, GroupKind kind) {
  const bool memory = kind == GroupKind::host_memory;
  const double rate = memory ? job_.cluster.host_memory.bytes_per_s : job_.cluster.host.effective_bytes_per_s();
  const auto [it, added] = host_links_.try_emplace({model_.first_host_sharer(kind, rank), kind}, 0);
  if (added) it->second = machine_.add_link(rate);
  note_port(folding_.class_of[rank], PortKind::host, it->second, rate);
  return it->second;
}

CommPlan CommPlanner::plan_folded(std::uint32_t call) {
  const CallPrice& price = prices_.calls[call];
  const int repeat = graph_.calls[call].repeat;
  CommPlan plan;
  if (price.intra_bytes > 0) {
    add_folded_leg(plan, PortKind::scale_up, price.intra_bytes * repeat, price.intra_bytes_per_s, price.alpha_s * repeat, call);
  }
  if (price.inter_bytes > 0) {
    const bool after = price.sequential && !plan.legs.empty();
    add_folded_leg(plan, PortKind::nic, price.inter_bytes * repeat, price.inter_bytes_per_s, after ? 0 : price.alpha_s * repeat, call);
    if (after) {
      plan.legs[1].waits_for = 1;
      plan.legs[0].releases = {1};
    }
  }
  if (plan.legs.empty()) add_leg(plan, price.alpha_s * repeat, 0, hosts_[0], hosts_[0], {});
  return plan;
}

// From the representative's port to its own port (collectives) or to the receiver's (point-to-point), at most at `rate`. A NIC that several
// GPUs share is loaded once for each of them.
void CommPlanner::add_folded_leg(CommPlan& plan, PortKind kind, double bytes, double rate, double delay_s, std::uint32_t call) {
  const std::vector<int>& members = graph_.groups[graph_.calls[call].group].members;
  const bool point_to_point = one_way(graph_.calls[call]);
  const auto representative = [&](int rank) { return folding_.ranks[folding_.class_of[rank]].rank; };
  const int from = representative(members[0]);
  const int to = point_to_point ? representative(members[1]) : from;
  const topology::ClusterSpec& cluster = job_.cluster;
  const int sharers = kind == PortKind::nic ? cluster.gpus_per_node / cluster.rails_per_node() : 1;
  std::vector<LinkIndex> links;
  if (rate < port_rate(kind) / sharers) links.push_back(own_link(from, kind, rate));  // pcie or trunks limit it
  for (int i = 0; i < sharers; ++i) {
    links.push_back(port(from, kind, true));
    links.push_back(port(to, kind, false));
  }
  if (kind == PortKind::nic && !point_to_point) add_slow_ports(members, from, links);
  add_leg(plan, delay_s, bytes, host_of(from), host_of(to), std::move(links));
}

// Slow ports of other classes belong to the collective's way as well: what else they carry slows it further.
void CommPlanner::add_slow_ports(const std::vector<int>& members, int from, std::vector<LinkIndex>& links) {
  std::set<int> others;
  for (const int rank : members) {
    const int representative = folding_.ranks[folding_.class_of[rank]].rank;
    if (representative != from && job_.simulation.faults.slow.port(representative) > 1) others.insert(representative);
  }
  for (const int rank : others) {
    links.push_back(port(rank, PortKind::nic, true));
    links.push_back(port(rank, PortKind::nic, false));
  }
}

LinkIndex CommPlanner::port(int rank, PortKind kind, bool out) {
  const topology::ClusterSpec& cluster = job_.cluster;
  const int node = rank / cluster.gpus_per_node;
  const int in_node = rank % cluster.gpus_per_node;
  const bool shared = kind == PortKind::nic && cluster.nics_per_node < cluster.gpus_per_node;
  const int place = shared ? node * cluster.gpus_per_node + in_node * cluster.rails_per_node() / cluster.gpus_per_node : rank;
  const auto [it, added] = ports_.try_emplace({place, kind, out}, 0);
  const double rate = port_rate(kind) / (kind == PortKind::nic ? job_.simulation.faults.slow.port(rank) : 1);
  if (added) it->second = machine_.add_link(rate);
  note_port(folding_.class_of[rank], kind, it->second, rate);
  return it->second;
}

// A link of one call alone.
LinkIndex CommPlanner::own_link(int rank, PortKind kind, double bytes_per_s) {
  const LinkIndex link = machine_.add_link(bytes_per_s);
  note_port(folding_.class_of[rank], kind, link, bytes_per_s);
  return link;
}

double CommPlanner::port_rate(PortKind kind) const {
  const topology::ClusterSpec& cluster = job_.cluster;
  if (kind == PortKind::scale_up) return std::max(cluster.intra.effective_bytes_per_s(), cluster.supernode.effective_bytes_per_s());
  return cluster.rail_bytes_per_s();
}

void CommPlanner::note_port(std::uint32_t simulated, PortKind kind, LinkIndex link, double bytes_per_s) {
  if (noted_.emplace(simulated, link).second) port_links_.push_back({simulated, kind, link, bytes_per_s});
}

CommPlan CommPlanner::plan_transfers(std::uint32_t call, bool by_round) {
  if (prices_.calls[call].algorithm == "none") {
    CommPlan plan;
    add_leg(plan, 0, 0, hosts_[0], hosts_[0], {});
    return plan;
  }
  // Tokens that counterparts pass on are no messages between pairs.
  if (graph_.calls[call].what.exchange) return prices_.calls[call].algorithm == "pairwise" ? pair_by_pair(call) : port_by_port(call);
  // Only a ring keeps every edge busy from its first to its last round; the rounds of other algorithms follow one another.
  const std::string& algorithm = prices_.calls[call].algorithm;
  const bool merges = algorithm == "ring" || algorithm == "send";
  return by_round || !merges ? round_by_round(call) : whole_volume(call);
}

// An exchange of many: what every simulated member sends and receives, each through its own ports, O(members). A hot rank's ports stay hot.
CommPlan CommPlanner::port_by_port(std::uint32_t call) {
  const std::vector<int>& members = members_of(call);
  CommPlan plan;
  if (prices_.calls[call].algorithm != "none") {
    const workloads::PortLoads loads = model_.loads(graph_.calls[call].what, members);
    std::set<std::uint32_t> done;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!done.insert(folding_.class_of[members[i]]).second) continue;
      const int rank = folding_.ranks[folding_.class_of[members[i]]].rank;
      add_port_leg(plan, rank, PortKind::scale_up, true, loads.intra_out[i], call);
      add_port_leg(plan, rank, PortKind::scale_up, false, loads.intra_in[i], call);
      add_port_leg(plan, rank, PortKind::nic, true, loads.inter_out[i], call);
      add_port_leg(plan, rank, PortKind::nic, false, loads.inter_in[i], call);
    }
  }
  if (plan.legs.empty()) add_leg(plan, prices_.calls[call].alpha_s, 0, hosts_[0], hosts_[0], {});
  return plan;
}

void CommPlanner::add_port_leg(CommPlan& plan, int rank, PortKind kind, bool out, double bytes, std::uint32_t call) {
  if (bytes <= 0) return;
  const CallPrice& price = prices_.calls[call];
  const double rate = kind == PortKind::scale_up ? price.intra_bytes_per_s : price.inter_bytes_per_s;
  const topology::ClusterSpec& cluster = job_.cluster;
  const int sharers = kind == PortKind::nic ? cluster.gpus_per_node / cluster.rails_per_node() : 1;
  std::vector<LinkIndex> links(static_cast<std::size_t>(sharers), port(rank, kind, out));
  if (rate < port_rate(kind) / sharers) links.push_back(own_link(rank, kind, rate));  // pcie or trunks limit it
  const int repeat = graph_.calls[call].repeat;
  add_leg(plan, price.alpha_s * repeat, bytes * repeat, host_of(rank), host_of(rank), std::move(links));
}

// An exchange as its point-to-point messages over the fabric's routes, all at once.
CommPlan CommPlanner::pair_by_pair(std::uint32_t call) {
  const std::vector<int>& members = members_of(call);
  const workloads::Exchange& exchange = *graph_.calls[call].what.exchange;
  const int n = static_cast<int>(members.size());
  CommPlan plan;
  plan.repeat = graph_.calls[call].repeat;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (from != to) add_transfer(plan, {.from = from, .to = to}, prices_.calls[call].alpha_s, exchange.bytes(from, to), call);
    }
  }
  return plan;
}

const std::vector<int>& CommPlanner::members_of(std::uint32_t call) const { return graph_.groups[graph_.calls[call].group].members; }

void CommPlanner::add_transfer(CommPlan& plan, const Transfer& t, double delay_s, double bytes, std::uint32_t call) {
  const std::vector<int>& members = members_of(call);
  const int from = members[t.from];
  const int to = members[t.to];
  const int rail = t.rail_of < 0 ? -1 : fabric().rail_of(members[t.rail_of]);
  add_leg(plan, delay_s, bytes, host_of(from), host_of(to), bytes > 0 ? route(from, to, call, rail) : std::vector<LinkIndex>{});
}

// One flow per pair of members with the bytes of all rounds, all at once after the alphas of all rounds.
CommPlan CommPlanner::whole_volume(std::uint32_t call) {
  const workloads::Call& c = graph_.calls[call];
  const std::vector<int>& members = members_of(call);
  const std::vector<Transfer> volumes = c.what.kind == CollectiveKind::send_recv
                                            ? shift_round(members, c.what.bytes, one_way(c)).transfers
                                            : algorithm_of(call).volumes(c.what.kind, model_.shape(members), c.what.bytes);
  CommPlan plan;
  for (const Transfer& t : volumes) add_transfer(plan, t, prices_.calls[call].alpha_s * c.repeat, t.bytes * c.repeat, call);
  return plan;
}

// Every transfer of every round: its alpha as a leg, then its bytes as another (workloads/collective.hpp says which wait for which).
CommPlan CommPlanner::round_by_round(std::uint32_t call) {
  const workloads::Call& c = graph_.calls[call];
  const std::vector<int>& members = members_of(call);
  const std::vector<Round> rounds = c.what.kind == CollectiveKind::send_recv
                                        ? std::vector<Round>{shift_round(members, c.what.bytes, one_way(c))}
                                        : algorithm_of(call).rounds(c.what.kind, model_.shape(members), c.what.bytes);
  CommPlan plan;
  plan.repeat = c.repeat;
  for (const Round& round : rounds) {
    for (const Transfer& t : round.transfers) {
      add_leg(plan, model_.latency_s(members[t.from], members[t.to]), 0, hosts_[0], hosts_[0], {});
      add_transfer(plan, t, 0, t.bytes, call);
    }
  }
  const auto wait = [&](std::size_t before, std::size_t after) {
    plan.legs[before].releases.push_back(static_cast<std::uint32_t>(after));
    ++plan.legs[after].waits_for;
  };
  const std::vector<workloads::Dependency> dependencies = workloads::dependencies(rounds);
  for (std::size_t i = 0; i < dependencies.size(); ++i) {  // transfer i is the legs 2i (alpha) and 2i + 1 (bytes)
    wait(2 * i, 2 * i + 1);
    for (const std::uint32_t before : dependencies[i].before_alpha) wait(2UL * before + 1, 2 * i);
    if (dependencies[i].before_bytes >= 0) wait(2 * static_cast<std::size_t>(dependencies[i].before_bytes) + 1, 2 * i + 1);
  }
  return plan;
}

const workloads::Collective& CommPlanner::algorithm_of(std::uint32_t call) const {
  return workloads::CollectiveRegistry::get(prices_.calls[call].algorithm);
}

const topology::Fabric& CommPlanner::fabric() {
  if (fabric_) return *fabric_;
  fabric_ = std::make_unique<topology::Fabric>(topology::Fabric::build(job_.cluster, job_.gpus));
  topology::Failures lost;
  int spines = job_.simulation.faults.slow.lost_spines;
  for (topology::VertexId v = 0; v < fabric_->vertex_count() && spines > 0; ++v) {
    if (fabric_->vertex_kind(v) != topology::VertexKind::network_switch || fabric_->vertex_name(v).find("spine") == std::string::npos)
      continue;
    lost.vertices.push_back(v);
    --spines;
  }
  if (!lost.vertices.empty()) *fabric_ = fabric_->without(lost);
  return *fabric_;
}

std::vector<LinkIndex> CommPlanner::route(int from, int to, std::uint64_t flow, int rail) {
  auto& links = routes_[{from, to, rail, flow}];
  if (!links.empty()) return links;
  topology::Route route;
  fabric().route(from, to, flow, route, rail);
  for (std::size_t i = 0; i < route.links.size(); ++i) {
    const topology::Link& link = fabric().links()[route.links[i]];
    const int rank = 2 * i < route.links.size() ? from : to;  // the sender's ports come first
    const double bytes_per_s = link.bandwidth_bytes_per_s / slowdown_of(link.kind, rank);
    links.push_back(fabric_link(route.links[i], bytes_per_s));
    if (link.kind == topology::LinkKind::trunk) continue;
    const PortKind kind = link.kind == topology::LinkKind::scale_up ? PortKind::scale_up : PortKind::nic;
    if (folding_.ranks[folding_.class_of[rank]].rank == rank) note_port(folding_.class_of[rank], kind, links.back(), bytes_per_s);
  }
  return links;
}

double CommPlanner::slowdown_of(topology::LinkKind kind, int rank) const {
  const SlowParts& slow = job_.simulation.faults.slow;
  if (kind == topology::LinkKind::trunk) return slow.trunks;
  return kind == topology::LinkKind::nic ? slow.port(rank) : 1;
}

LinkIndex CommPlanner::fabric_link(topology::LinkId id, double bytes_per_s) {
  const auto [it, added] = fabric_links_.try_emplace(id, 0);
  if (added) it->second = machine_.add_link(bytes_per_s);
  return it->second;
}

}  // namespace rehearse::sim
