#include "sim/serving/network_transfers_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/serving/placement.hpp"
#include "topology/fabric.hpp"

namespace rehearse::sim {
namespace {

using topology::Fabric;
using topology::LinkId;

constexpr std::size_t most_instances = 8;  // of a pool, whose ways are looked at
constexpr std::size_t most_ways = 1024;    // of a lane, with those of attention replicas

}  // namespace

std::shared_ptr<const topology::Fabric> fabric_for(topology::ClusterSpec cluster, int gpus) {
  const int nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  if (cluster.network.kind == topology::Network::none) return std::make_shared<const Fabric>(Fabric::build(cluster, gpus));
  // One domain more, so that there is a way out of the last one.
  const int domain = cluster.domain_gpus() / cluster.gpus_per_node,
            all = cluster.supernode_gpus > 0 ? (nodes + domain - 1) / domain * domain + domain : nodes + 1;
  cluster.nodes = std::max(cluster.nodes, all);
  return std::make_shared<const Fabric>(Fabric::build(cluster, all * cluster.gpus_per_node));
}

NetworkTransfers::Fabrics NetworkTransfers::Impl::fabrics_of(const ServingJob& job) {
  Fabrics out;
  for (std::size_t part = 0; part < job.parts.size(); ++part) out.push_back(fabric_for(job.parts[part].cluster, gpus_taken(job, part)));
  return out;
}

// A request belongs to one attention replica on each side, in turn.
int NetworkTransfers::Impl::rank_gpu(std::size_t pool, std::size_t instance, std::size_t request, int rank) const {
  const workloads::InstancePlan& plan = job.pools[pool].plan;
  const int stage = rank / plan.tp, tensor = rank % plan.tp, replica = static_cast<int>(request % static_cast<std::size_t>(plan.dp));
  return places[pool][instance] + stage * plan.stage_ranks() + replica * plan.tp + tensor;
}

// What the file says, else what the smaller side's NICs carry.
double NetworkTransfers::Impl::between_bytes_per_s(const Parts& parts) const {
  const topology::LinkSpec& between = job.between.of(parts.first, parts.second);
  if (between.bandwidth_bytes_per_s > 0) return between.effective_bytes_per_s();
  const auto side_bytes_per_s = [&](std::size_t part, Role role) {
    return ports_bytes_per_s(job.parts[part].cluster, nodes_of(job, part, role));
  };
  return std::min(side_bytes_per_s(parts.first, Role::prefill), side_bytes_per_s(parts.second, Role::decode));
}

NetworkTransfers::NetworkTransfers(const ServingJob& job) : NetworkTransfers(job, Impl::fabrics_of(job)) {}

NetworkTransfers::NetworkTransfers(const ServingJob& job, Fabrics fabrics) : impl_(std::make_unique<Impl>(job)) {
  impl_->fabrics = std::move(fabrics);
  impl_->plan();
  for (const TransferLane& lane : impl_->lanes) {
    for (const std::size_t end : {lane.from_part, lane.to_part}) {
      const ClusterPart& part = job.parts[end];
      if (lane.one_part() || part.cluster.network.kind != topology::Network::none) continue;
      throw config::InputError(fmt::format("part '{}' has no network: nothing leads from pool '{}' to pool '{}'", part.name,
                                           job.pools[lane.from_pool].name, job.pools[lane.to_pool].name));
    }
  }
  for (const TransferLane& lane : impl_->lanes) impl_->lane_ways.push_back(impl_->ways_of(lane));
}

void NetworkTransfers::Impl::plan() {
  senders = static_cast<std::size_t>(std::ranges::count(job.pools, Role::prefill, &Pool::role));
  for (std::size_t from = 0; from < senders; ++from) {
    for (std::size_t to = senders; to < job.pools.size(); ++to) {
      lanes.push_back(transfer_lane(job, from, to));
      if (!lanes.back().one_part()) {
        const Parts parts{lanes.back().from_part, lanes.back().to_part};
        if (!between.contains(parts)) between[parts] = {.link = 0, .bytes_per_s = between_bytes_per_s(parts)};
      }
    }
  }
}

NetworkTransfers::Impl::LaneWays NetworkTransfers::Impl::ways_of(const TransferLane& lane) const {
  LaneWays out;
  const std::size_t sources = std::min(most_instances, places[lane.from_pool].size()),
                    targets = std::min(most_instances, places[lane.to_pool].size());
  const auto replicas = [&](std::size_t pool) { return static_cast<std::size_t>(job.pools[pool].plan.dp); };
  const std::size_t requests =
      std::min(std::lcm(replicas(lane.from_pool), replicas(lane.to_pool)), std::max<std::size_t>(1, most_ways / (sources * targets)));
  for (std::size_t source = 0; source < sources; ++source) {
    for (std::size_t target = 0; target < targets; ++target) {
      for (std::size_t request = 0; request < requests; ++request) out.between.push_back(ways_between(lane, source, target, request, out));
    }
  }
  out.sources = sources;
  out.targets = targets;
  const auto looked_at = [&](std::size_t pool, std::size_t instances) {
    return static_cast<double>(instances * std::min(requests, replicas(pool))) / static_cast<double>(places[pool].size() * replicas(pool));
  };
  out.senders = looked_at(lane.from_pool, sources);
  out.receivers = looked_at(lane.to_pool, targets);
  out.all_sources = static_cast<double>(places[lane.from_pool].size());
  out.loads.resize(out.known.size());
  return out;
}

NetworkTransfers::Impl::Ways NetworkTransfers::Impl::ways_between(const TransferLane& lane, std::size_t source, std::size_t target,
                                                                  std::size_t request, LaneWays& all) const {
  Ways out;
  const std::pair<std::size_t, LinkId> crossing = crossing_link();
  const auto place = [&](const std::pair<std::size_t, LinkId>& link) { return all.known.emplace(link, all.known.size()).first->second; };
  for (const workloads::KvPair& pair : lane.pairs) {
    auto& links_of_pair = out.of_pair.emplace_back();
    const int from = rank_gpu(lane.from_pool, source, request, pair.from), to = rank_gpu(lane.to_pool, target, request, pair.to);
    for (const auto& link : way(lane, from, to, out.latency_s)) links_of_pair.emplace_back(place(link), 1 / (lane.line_share * rate(link)));
    if (!lane.one_part())
      links_of_pair.emplace_back(place(crossing), 1 / (lane.line_share * between.at({lane.from_part, lane.to_part}).bytes_per_s));
  }
  return out;
}

// Adds a hand-over's seconds to those of each link; the slowest link's.
double NetworkTransfers::Impl::load(const LaneWays& all, const Ways& ways, const TransferLane& lane, const CacheFront& sent,
                                    const CacheFront& ready) const {
  double slowest_s = 0;
  for (std::size_t i = 0; i < lane.pairs.size(); ++i) {
    const double bytes = lane.piece_bytes(lane.pairs[i], sent, ready);
    for (const auto& [link, seconds] : ways.of_pair[i]) slowest_s = std::max(slowest_s, all.loads[link] += seconds * bytes);
  }
  return slowest_s;
}

NetworkTransfers::~NetworkTransfers() = default;

void NetworkTransfers::build(Machine& machine) {
  impl_->links.clear();
  cut({});
  for (const auto& fabric : impl_->fabrics) {
    auto& links = impl_->links.emplace_back();
    for (const topology::Link& link : fabric->links()) links.push_back(machine.add_link(link.bandwidth_bytes_per_s));
  }
  for (auto& [parts, crossing] : impl_->between) crossing.link = machine.add_link(crossing.bytes_per_s);
}

std::vector<TransferLink> NetworkTransfers::links() const {
  std::vector<TransferLink> out;
  for (std::size_t part = 0; part < impl_->fabrics.size(); ++part) {
    const Fabric& fabric = *impl_->fabrics[part];
    for (const topology::Link& link : fabric.links())
      out.push_back({impl_->job.parts[part].name, fabric.vertex_name(link.from), fabric.vertex_name(link.to), link.bandwidth_bytes_per_s});
  }
  for (const auto& [parts, crossing] : impl_->between)
    out.push_back({"", impl_->job.parts[parts.first].name, impl_->job.parts[parts.second].name, crossing.bytes_per_s});
  return out;
}

std::pair<std::size_t, std::size_t> NetworkTransfers::Impl::place_in(std::size_t first_pool, std::size_t instance) const {
  std::size_t pool = first_pool;
  while (instance >= static_cast<std::size_t>(job.pools[pool].instances)) instance -= static_cast<std::size_t>(job.pools[pool++].instances);
  return {pool, instance};
}

std::int64_t NetworkTransfers::early(std::size_t from, std::int64_t computed) const {
  if (whole()) return 0;
  const int page = impl_->lane(impl_->place_in(0, from).first, 0).page;
  return computed / page * page;
}

bool NetworkTransfers::whole() const { return impl_->job.transfer.mode == TransferMode::after_prefill; }

int NetworkTransfers::layers() const { return impl_->job.transfer.mode == TransferMode::layerwise ? impl_->job.model.layers : 1; }

HandOver NetworkTransfers::hand_over(std::size_t from, std::size_t to, std::size_t request, const CacheFront& sent,
                                     const CacheFront& ready) const {
  const auto [sender, source] = impl_->place_in(0, from);
  const auto [receiver, target] = impl_->place_in(impl_->senders, to);
  const TransferLane& lane = impl_->lane(sender, receiver - impl_->senders);
  HandOver out;
  double latency_s = 0;
  for (const workloads::KvPair& pair : lane.pairs) {
    const double bytes = lane.piece_bytes(pair, sent, ready);
    if (bytes <= 0) continue;
    const int source_gpu = impl_->rank_gpu(sender, source, request, pair.from),
              target_gpu = impl_->rank_gpu(receiver, target, request, pair.to);
    HandOver::Flow flow;
    for (const auto& [part, link] : impl_->way(lane, source_gpu, target_gpu, latency_s)) flow.links.push_back(impl_->links[part][link]);
    if (!lane.one_part()) flow.links.push_back(impl_->between.at({lane.from_part, lane.to_part}).link);
    out.bytes += bytes;
    flow.bytes = bytes / lane.line_share;
    out.flows.push_back(std::move(flow));
  }
  const double tokens = lane.piece_tokens(sent, ready, 0, lane.layers);
  out.before_s = lane.start_s(tokens, latency_s);
  out.after_s = lane.receiver_s_per_token * tokens;
  out.aligning_s = lane.aligning_s_per_token() * tokens;
  return out;
}

std::optional<std::pair<LinkIndex, double>> NetworkTransfers::link(const ServiceLink& of) const {
  if (of.part < impl_->fabrics.size()) return std::pair(impl_->links[of.part][of.link], impl_->rate({of.part, of.link}));
  for (const auto& [parts, crossing] : impl_->between) {
    if (between_parts(impl_->fabrics.size(), parts.first, parts.second) == of) return std::pair(crossing.link, crossing.bytes_per_s);
  }
  return std::nullopt;
}

void NetworkTransfers::cut(const std::vector<ServiceLink>& links) {
  const std::size_t parts = impl_->fabrics.size();
  impl_->gone.assign(parts, {});
  for (const ServiceLink& one : links) {
    if (one.part < parts) impl_->gone[one.part].push_back(one.link);
  }
  impl_->left.clear();
  impl_->left.resize(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    std::ranges::sort(impl_->gone[part]);
    if (!impl_->gone[part].empty()) impl_->left[part] = impl_->fabrics[part]->without({.vertices = {}, .links = impl_->gone[part]});
  }
}

bool NetworkTransfers::reserves_first() const { return impl_->job.transfer.reserves_first; }
bool NetworkTransfers::prefill_answers_first() const { return impl_->job.transfer.prefill_answers_first; }
const std::vector<TransferLane>& NetworkTransfers::lanes() const { return impl_->lanes; }

double NetworkTransfers::wire_bytes(double prompt, std::size_t lane) const {
  const TransferLane& plan = impl_->lanes[lane];
  const CacheFront whole{static_cast<std::int64_t>(std::ceil(prompt))};
  double sum = 0;
  for (const workloads::KvPair& pair : plan.pairs) sum += plan.piece_bytes(pair, {}, whole);
  return sum;
}

// The slowest link, loaded by all flows that cross it; mean over pairs of instances.
NetworkTransfers::Alone NetworkTransfers::alone(const CacheFront& sent, const CacheFront& ready, std::size_t lane) const {
  const TransferLane& plan = impl_->lanes[lane];
  const Impl::LaneWays& all = impl_->lane_ways[lane];
  const double tokens = plan.piece_tokens(sent, ready, 0, plan.layers);
  Alone out{.before_s = 0, .links_s = 0, .after_s = plan.receiver_s_per_token * tokens};
  const auto share = 1 / static_cast<double>(all.between.size());
  for (const Impl::Ways& ways : all.between) {
    std::fill(all.loads.begin(), all.loads.end(), 0);
    out.links_s += share * impl_->load(all, ways, plan, sent, ready);
    out.before_s += share * plan.start_s(tokens, ways.latency_s);
  }
  return out;
}

NetworkTransfers::Busiest NetworkTransfers::busiest(double prompt, std::size_t lane, double there) const {
  const TransferLane& plan = impl_->lanes[lane];
  const Impl::LaneWays& all = impl_->lane_ways[lane];
  const CacheFront sent{static_cast<std::int64_t>(there)}, ready{static_cast<std::int64_t>(std::ceil(prompt))};
  const std::size_t links = all.loads.size(), turns = all.between.size() / all.sources / all.targets;
  std::vector<double> sum_s(links, 0);
  std::vector<std::vector<bool>> sends(links, std::vector<bool>(all.sources)), receives(links, std::vector<bool>(all.targets));
  for (std::size_t way = 0; way < all.between.size(); ++way) {
    std::fill(all.loads.begin(), all.loads.end(), 0);
    impl_->load(all, all.between[way], plan, sent, ready);
    for (std::size_t link = 0; link < links; ++link) {
      if (all.loads[link] <= 0) continue;
      sum_s[link] += all.loads[link];
      sends[link][way / turns / all.targets] = true;
      receives[link][way / turns % all.targets] = true;
    }
  }
  const auto number = [](const std::vector<bool>& some) { return static_cast<std::size_t>(std::ranges::count(some, true)); };
  // What joins the parts is shared by those too that are not looked at.
  const auto crossing = all.known.find(impl_->crossing_link());
  Busiest out;
  for (std::size_t link = 0; link < links; ++link) {
    const std::size_t senders = number(sends[link]);
    const bool of_all = crossing != all.known.end() && crossing->second == link;
    const double seconds =
        (of_all ? 1 : all.share(senders, number(receives[link]))) / static_cast<double>(all.between.size()) * sum_s[link];
    const double sharing = of_all ? all.all_sources : static_cast<double>(senders);
    out.seconds = std::max(out.seconds, seconds);
    if (sharing > 1) out.of_others_s = std::max(out.of_others_s, seconds * (1 - 1 / sharing));
  }
  return out;
}

double NetworkTransfers::aligning_s(const CacheFront& sent, const CacheFront& ready, std::size_t lane) const {
  const TransferLane& plan = impl_->lanes[lane];
  return plan.aligning_s_per_token() * plan.piece_tokens(sent, ready, 0, plan.layers);
}

double NetworkTransfers::alone_s(double prompt, std::size_t lane, double there) const {
  const Alone times = alone({static_cast<std::int64_t>(there)}, {static_cast<std::int64_t>(std::ceil(prompt))}, lane);
  return times.before_s + times.links_s + times.after_s;
}

}  // namespace rehearse::sim
