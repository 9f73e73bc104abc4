#include "sim/serving/network_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/serving/placement.hpp"
#include "topology/fabric.hpp"
#include "workloads/serving/kv_layout.hpp"
#include "workloads/serving/pass_operators.hpp"

namespace rehearse::sim {
namespace {

using topology::Fabric;
using topology::LinkId;
using topology::LinkKind;

// Through the hosts' memory a cache goes in pieces, so that its three copies overlap (assumption: as Mooncake's slices, tens of pages).
constexpr double staging_bytes = 4.0 * 1024 * 1024;

}  // namespace

std::shared_ptr<const topology::Fabric> fabric_for(topology::ClusterSpec cluster, int gpus) {
  const int nodes = (gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  if (cluster.network.kind == topology::Network::none) return std::make_shared<const Fabric>(Fabric::build(cluster, gpus));
  cluster.nodes = std::max(cluster.nodes, nodes + 1);  // one more, so that there is a way out of the last one
  return std::make_shared<const Fabric>(Fabric::build(cluster, (nodes + 1) * cluster.gpus_per_node));
}

struct NetworkTransfers::Impl {
  const ServingJob& job;
  Fabrics fabrics;                       // by part
  std::vector<std::vector<int>> places;  // [pool][instance] its first GPU in its part
  std::vector<workloads::KvPair> pairs;
  std::vector<KvAlignmentWork> alignment;
  std::vector<std::vector<LinkIndex>> links;  // [part][fabric link]
  LinkIndex between = 0;
  double sender_s_per_token = 0, receiver_s_per_token = 0;
  // From the first instance to the first one: [pair] links by their places in `loads` with seconds of a token.
  std::vector<std::vector<std::pair<std::size_t, double>>> first_ways;
  double first_latency_s = 0;
  mutable std::vector<double> loads;
  double wire_share = 1;  // bytes on the wire of a sender's byte, by its number format

  explicit Impl(const ServingJob& serving) : job(serving), places(places_of(serving)) {}
  [[nodiscard]] const Pool& sender() const { return job.pools.front(); }
  [[nodiscard]] const Pool& receiver() const { return job.pools.back(); }
  [[nodiscard]] bool one_part() const { return sender().part == receiver().part; }
  // Whole pages are sent.
  [[nodiscard]] double in_pages(double tokens) const { return std::ceil(tokens / sender().habits.page) * sender().habits.page; }
  [[nodiscard]] double share() const { return std::min(sender().habits.transfer_share, receiver().habits.transfer_share); }

  void build_fabrics();
  void separate();
  void plan();
  void plan_alignment();
  [[nodiscard]] std::vector<std::pair<std::size_t, LinkId>> way(int from, int to, double& latency_s) const;
  [[nodiscard]] std::vector<std::pair<std::size_t, LinkId>> way_out(std::size_t part, int gpu, bool out, double& latency_s) const;
  [[nodiscard]] double between_bytes_per_s() const;
  [[nodiscard]] double rate(const std::pair<std::size_t, LinkId>& link) const {
    return fabrics[link.first]->links()[link.second].bandwidth_bytes_per_s;
  }
  [[nodiscard]] double tokens_of(const CacheFront& front, int first, int last) const;
  [[nodiscard]] double piece_tokens(const CacheFront& sent, const CacheFront& ready, int first, int last) const;
  [[nodiscard]] double start_s(double tokens, double latency_s) const;
  [[nodiscard]] int rank_gpu(std::size_t pool, std::size_t instance, std::size_t request, int rank) const;
};

void NetworkTransfers::Impl::build_fabrics() {
  for (std::size_t part = 0; part < job.parts.size(); ++part) fabrics.push_back(fabric_for(job.parts[part].cluster, gpus_taken(job, part)));
}

// Where there is a network each side begins a node of its own.
void NetworkTransfers::Impl::separate() {
  if (!one_part() || job.parts[sender().part].cluster.network.kind == topology::Network::none) return;
  const int per_node = job.parts[sender().part].cluster.gpus_per_node;
  places[1].front() = (places[0].back() + sender().plan.gpus() + per_node - 1) / per_node * per_node;
}

void NetworkTransfers::Impl::plan_alignment() {
  const auto side = [&](const Pool& pool) {
    return KvSide{&pool.plan, &pool.habits, &job.parts[pool.part].gpu, workloads::kv_bytes_per_token(pool.plan).per_gpu};
  };
  alignment = alignment_of(side(sender()), side(receiver()));
  for (const KvAlignmentWork& work : alignment) {
    sender_s_per_token += work.sender_s_per_token;
    receiver_s_per_token += work.receiver_s_per_token;
  }
  wire_share = std::min(1.0, bytes_of(receiver().plan.precision.kv) / bytes_of(sender().plan.precision.kv));
}

// A request belongs to one attention replica on each side, in turn.
int NetworkTransfers::Impl::rank_gpu(std::size_t pool, std::size_t instance, std::size_t request, int rank) const {
  const workloads::InstancePlan& plan = job.pools[pool].plan;
  const int stage = rank / plan.tp, tensor = rank % plan.tp, replica = static_cast<int>(request % static_cast<std::size_t>(plan.dp));
  return places[pool][instance] + stage * plan.stage_ranks() + replica * plan.tp + tensor;
}

// From a GPU to its part's switches, or back: up to the link behind its NIC.
std::vector<std::pair<std::size_t, LinkId>> NetworkTransfers::Impl::way_out(std::size_t part, int gpu, bool out, double& latency_s) const {
  const Fabric& fabric = *fabrics[part];
  const int per_node = fabric.cluster().gpus_per_node, other = gpu < per_node ? gpu + per_node : gpu - per_node;
  topology::Route route;
  out ? fabric.route(gpu, other, 0, route) : fabric.route(other, gpu, 0, route);
  latency_s = std::max(latency_s, route.latency_s);
  std::vector<std::pair<std::size_t, LinkId>> links;
  const auto is_nic = [&](LinkId link) { return fabric.links()[link].kind == LinkKind::nic; };
  if (out) {
    for (const LinkId link : route.links) {
      links.emplace_back(part, link);
      if (is_nic(link)) break;
    }
  } else {
    const auto last = std::find_if(route.links.rbegin(), route.links.rend(), is_nic);
    for (auto link = std::prev(last.base()); link != route.links.end(); ++link) links.emplace_back(part, *link);
  }
  return links;
}

std::vector<std::pair<std::size_t, LinkId>> NetworkTransfers::Impl::way(int from, int to, double& latency_s) const {
  const std::size_t from_part = sender().part, to_part = receiver().part;
  const bool staged = job.transfer.path == TransferPath::host_staged;
  std::vector<std::pair<std::size_t, LinkId>> links;
  if (staged) links.emplace_back(from_part, fabrics[from_part]->device_to_host(from));
  const bool same_node = one_part() && fabrics[from_part]->node_of(from) == fabrics[from_part]->node_of(to);
  if (one_part() && !(staged && same_node)) {
    topology::Route route;
    fabrics[from_part]->route(from, to, 0, route);
    latency_s = std::max(latency_s, route.latency_s);
    for (const LinkId link : route.links) links.emplace_back(from_part, link);
  } else if (!one_part()) {
    for (const auto& link : way_out(from_part, from, true, latency_s)) links.push_back(link);
    for (const auto& link : way_out(to_part, to, false, latency_s)) links.push_back(link);
    latency_s = std::max(latency_s, job.between.latency_s);
  }
  if (staged) links.emplace_back(to_part, fabrics[to_part]->host_to_device(to));
  return links;
}

// Of the network between two parts: what the file says, else what the smaller side's NICs carry.
double NetworkTransfers::Impl::between_bytes_per_s() const {
  if (job.between.bandwidth_bytes_per_s > 0) return job.between.effective_bytes_per_s();
  double least = INFINITY;
  for (const Pool* pool : {&sender(), &receiver()}) {
    const topology::ClusterSpec& cluster = job.parts[pool->part].cluster;
    const double nodes = std::ceil(static_cast<double>(pool->gpus()) / cluster.gpus_per_node);
    least = std::min(least, nodes * cluster.rail_bytes_per_s() * cluster.rails_per_node());
  }
  return least;
}

NetworkTransfers::NetworkTransfers(const ServingJob& job) : impl_(std::make_unique<Impl>(job)) {
  if (job.pools.front().part != job.pools.back().part) {
    for (const Pool& pool : job.pools) {
      const ClusterPart& part = job.parts[pool.part];
      if (part.cluster.network.kind == topology::Network::none) {
        throw config::InputError(fmt::format("part '{}' has no network: nothing leads from pool '{}' to pool '{}'", part.name,
                                             job.pools.front().name, job.pools.back().name));
      }
    }
  }
  impl_->build_fabrics();
  impl_->plan();
}

NetworkTransfers::NetworkTransfers(const ServingJob& job, Fabrics fabrics) : impl_(std::make_unique<Impl>(job)) {
  impl_->fabrics = std::move(fabrics);
  impl_->separate();
  impl_->plan();
}

void NetworkTransfers::Impl::plan() {
  plan_alignment();
  pairs = workloads::kv_pairs(sender().plan, receiver().plan);
  std::map<std::pair<std::size_t, LinkId>, std::size_t> known;
  const std::pair<std::size_t, LinkId> no_link{job.parts.size(), 0};  // between the parts
  for (const workloads::KvPair& pair : pairs) {
    const double bytes = pair.bytes_per_token * wire_share / share();
    auto& links_of_pair = first_ways.emplace_back();
    for (const auto& link : way(rank_gpu(0, 0, 0, pair.from), rank_gpu(1, 0, 0, pair.to), first_latency_s))
      links_of_pair.emplace_back(known.emplace(link, known.size()).first->second, bytes / rate(link));
    if (!one_part()) links_of_pair.emplace_back(known.emplace(no_link, known.size()).first->second, bytes / between_bytes_per_s());
  }
  loads.resize(known.size());
}

NetworkTransfers::~NetworkTransfers() = default;

void NetworkTransfers::build(Machine& machine) {
  impl_->links.clear();
  for (const auto& fabric : impl_->fabrics) {
    auto& links = impl_->links.emplace_back();
    for (const topology::Link& link : fabric->links()) links.push_back(machine.add_link(link.bandwidth_bytes_per_s));
  }
  if (!impl_->one_part()) impl_->between = machine.add_link(impl_->between_bytes_per_s());
}

std::vector<TransferLink> NetworkTransfers::links() const {
  std::vector<TransferLink> out;
  for (std::size_t part = 0; part < impl_->fabrics.size(); ++part) {
    const Fabric& fabric = *impl_->fabrics[part];
    for (const topology::Link& link : fabric.links())
      out.push_back({impl_->job.parts[part].name, fabric.vertex_name(link.from), fabric.vertex_name(link.to), link.bandwidth_bytes_per_s});
  }
  const auto name = [&](const Pool& pool) { return impl_->job.parts[pool.part].name; };
  if (!impl_->one_part()) out.push_back({"", name(impl_->sender()), name(impl_->receiver()), impl_->between_bytes_per_s()});
  return out;
}

std::int64_t NetworkTransfers::early(std::int64_t computed) const {
  const int page = impl_->sender().habits.page;
  return impl_->job.transfer.mode == TransferMode::after_prefill ? 0 : computed / page * page;
}

int NetworkTransfers::layers() const { return impl_->job.transfer.mode == TransferMode::layerwise ? impl_->job.model.layers : 1; }

// In all of the layers [first, last), as if the tokens ahead were spread over them.
double NetworkTransfers::Impl::tokens_of(const CacheFront& front, int first, int last) const {
  const double whole = in_pages(static_cast<double>(front.tokens));
  if (front.layers <= first) return whole;
  const double ahead = in_pages(static_cast<double>(front.ahead));
  return whole + (ahead - whole) * (std::min(front.layers, last) - first) / (last - first);
}

double NetworkTransfers::Impl::piece_tokens(const CacheFront& sent, const CacheFront& ready, int first, int last) const {
  return tokens_of(ready, first, last) - tokens_of(sent, first, last);
}

// Before anything moves: engines, latency, the sender's kernels, the first piece on its way to the host and from it.
double NetworkTransfers::Impl::start_s(double tokens, double latency_s) const {
  double seconds = sender().habits.transfer_start_s + latency_s + sender_s_per_token * tokens;
  if (job.transfer.path == TransferPath::gpu_direct) return seconds;
  for (const Pool* pool : {&sender(), &receiver()}) {
    const topology::LinkSpec& host = job.parts[pool->part].cluster.host;
    seconds += host.latency_s + staging_bytes / host.effective_bytes_per_s();
  }
  return seconds;
}

HandOver NetworkTransfers::hand_over(std::size_t from, std::size_t to, std::size_t request, const CacheFront& sent,
                                     const CacheFront& ready) const {
  const Impl& plan = *impl_;
  HandOver out;
  double latency_s = 0;
  for (const workloads::KvPair& pair : plan.pairs) {
    const double tokens = plan.piece_tokens(sent, ready, pair.first_layer, pair.last_layer);
    if (tokens <= 0) continue;
    const int source = plan.rank_gpu(0, from, request, pair.from), target = plan.rank_gpu(1, to, request, pair.to);
    const double bytes = pair.bytes_per_token * tokens * plan.wire_share;
    HandOver::Flow flow;
    for (const auto& [part, link] : plan.way(source, target, latency_s)) flow.links.push_back(plan.links[part][link]);
    if (!plan.one_part()) flow.links.push_back(plan.between);
    out.bytes += bytes;
    flow.bytes = bytes / plan.share();
    out.flows.push_back(std::move(flow));
  }
  const double tokens = plan.piece_tokens(sent, ready, 0, plan.job.model.layers);
  out.before_s = plan.start_s(tokens, latency_s);
  out.after_s = plan.receiver_s_per_token * tokens;
  return out;
}

std::vector<std::pair<LinkIndex, double>> NetworkTransfers::port(std::size_t part, int gpu) const {
  std::vector<std::pair<LinkIndex, double>> out;
  if (impl_->job.parts[part].cluster.network.kind == topology::Network::none) return out;
  double latency_s = 0;
  for (const bool outwards : {true, false}) {
    for (const auto& link : impl_->way_out(part, gpu, outwards, latency_s)) {
      if (impl_->fabrics[part]->links()[link.second].kind == LinkKind::nic)
        out.emplace_back(impl_->links[part][link.second], impl_->rate(link));
    }
  }
  return out;
}

bool NetworkTransfers::reserves_first() const { return impl_->job.transfer.reserves_first; }
bool NetworkTransfers::prefill_answers_first() const { return impl_->job.transfer.prefill_answers_first; }
const std::vector<KvAlignmentWork>& NetworkTransfers::alignment() const { return impl_->alignment; }

double NetworkTransfers::wire_bytes(double prompt) const {
  const double tokens = impl_->in_pages(prompt);
  double sum = 0;
  for (const workloads::KvPair& pair : impl_->pairs) sum += pair.bytes_per_token * tokens * impl_->wire_share;
  return sum;
}

double NetworkTransfers::carried_per_s(double prompt) const {
  if (impl_->one_part()) return INFINITY;
  return impl_->between_bytes_per_s() * impl_->share() / wire_bytes(prompt);
}

// The slowest link, loaded by all flows that cross it.
NetworkTransfers::Alone NetworkTransfers::alone(const CacheFront& sent, const CacheFront& ready) const {
  const Impl& plan = *impl_;
  std::fill(plan.loads.begin(), plan.loads.end(), 0);
  double slowest_s = 0;
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const workloads::KvPair& pair = plan.pairs[i];
    const double tokens = plan.piece_tokens(sent, ready, pair.first_layer, pair.last_layer);
    for (const auto& [link, seconds] : plan.first_ways[i]) slowest_s = std::max(slowest_s, plan.loads[link] += seconds * tokens);
  }
  const double tokens = plan.piece_tokens(sent, ready, 0, plan.job.model.layers);
  return {plan.start_s(tokens, plan.first_latency_s), slowest_s, plan.receiver_s_per_token * tokens};
}

double NetworkTransfers::alone_s(double prompt) const {
  const Alone times = alone({}, {static_cast<std::int64_t>(std::ceil(prompt))});
  return times.before_s + times.links_s + times.after_s;
}

}  // namespace rehearse::sim
