#include "sim/engine/contention.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "sim/engine/executor.hpp"

namespace rehearse::sim {
namespace {

using workloads::Purpose;

constexpr std::array<const char*, 9> keys{"", "", "tp", "cp", "ep", "pp", "dp", "offload", ""};  // by Purpose

ContentionPair pair_of(const Gpu& gpu, std::size_t purpose) {
  const auto it = gpu.contention.find(keys[purpose]);
  return it == gpu.contention.end() ? ContentionPair{} : it->second;
}

}  // namespace

std::vector<double> contention_speeds(const Gpu& gpu, std::span<const double> slowdowns) {
  std::vector<double> speeds{1};
  for (std::size_t purpose = 0; purpose < keys.size(); ++purpose) speeds.push_back(1 / pair_of(gpu, purpose).alpha);
  const std::vector<double> full = speeds;
  for (const double slowdown : slowdowns) {
    for (const double speed : full) speeds.push_back(speed / slowdown);
  }
  return speeds;
}

Contention::Contention(const Gpu& gpu, std::size_t ranks, const std::vector<PortLink>& ports, const std::vector<PortLink>& flapping,
                       const std::vector<HostIndex>& hosts, Machine& machine)
    : ranks_(ranks), links_of_rank_(ranks), hosts_(hosts), machine_(machine) {
  for (std::size_t purpose = 0; purpose < purposes; ++purpose) {
    pairs_[purpose] = pair_of(gpu, purpose);
    neutral_ = neutral_ && pairs_[purpose].alpha == 1 && pairs_[purpose].beta == 1;
  }
  std::map<LinkIndex, std::size_t> index;
  const auto link_of = [&](const PortLink& port) -> LinkState& {
    const auto [it, added] = index.try_emplace(port.link, links_.size());
    if (added) links_.push_back({port.link, port.bytes_per_s, 1, {}, {}});
    std::vector<std::size_t>& of_rank = links_of_rank_[port.rank];
    if (std::ranges::find(of_rank, it->second) == of_rank.end()) of_rank.push_back(it->second);
    return links_[it->second];
  };
  for (const PortLink& port : ports) link_of(port).users.emplace_back(port.rank, port.kind);
  for (const PortLink& port : flapping) link_of(port).ports_of.push_back(port.rank);
}

void Contention::slow_gpu(std::uint32_t rank, std::size_t which) {
  ranks_[rank].slowdown = which;
  update(rank);
}

void Contention::slow_port(std::uint32_t rank, double slowdown) {
  ranks_[rank].port_slowdown = slowdown;
  update_links(rank);
}

void Contention::computes(std::uint32_t rank, bool on) {
  if (neutral_) return;
  ranks_[rank].computing = on;
  update(rank);
}

void Contention::communicates(std::uint32_t rank, Purpose purpose, const CallPrice& price, int change) {
  if (neutral_) return;
  RankState& state = ranks_[rank];
  std::array<int, port_kinds>& active = state.active[static_cast<std::size_t>(purpose)];
  const auto add = [&](PortKind kind, double bytes) {
    if (bytes <= 0) return;
    active[static_cast<std::size_t>(kind)] += change;
    state.communications += change;
  };
  add(PortKind::scale_up, price.intra_bytes);
  add(PortKind::nic, price.inter_bytes);
  add(PortKind::host, price.host_bytes);
  update(rank);
}

std::size_t Contention::speed_of(const RankState& state) const {
  std::size_t slowest = 0;
  if (state.communications == 0) return slowest;
  double alpha = 1;
  for (std::size_t purpose = 0; purpose < purposes; ++purpose) {
    const std::array<int, port_kinds>& active = state.active[purpose];
    if (std::accumulate(active.begin(), active.end(), 0) == 0 || pairs_[purpose].alpha <= alpha) continue;
    alpha = pairs_[purpose].alpha;
    slowest = purpose + 1;
  }
  return slowest;
}

std::array<double, port_kinds> Contention::betas_of(const RankState& state) const {
  std::array<double, port_kinds> betas = all_one;
  if (!state.computing || state.communications == 0) return betas;
  for (std::size_t purpose = 0; purpose < purposes; ++purpose) {
    for (std::size_t kind = 0; kind < port_kinds; ++kind) {
      if (state.active[purpose][kind] > 0) betas[kind] = std::max(betas[kind], pairs_[purpose].beta);
    }
  }
  return betas;
}

void Contention::update(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const std::size_t speed = state.slowdown * (purposes + 1) + speed_of(state);
  if (speed != state.speed) machine_.set_speed(hosts_[rank], speed);
  state.speed = speed;
  const std::array<double, port_kinds> betas = betas_of(state);
  if (betas == state.beta) return;
  state.beta = betas;
  update_links(rank);
}

void Contention::update_links(std::uint32_t rank) {
  for (const std::size_t index : links_of_rank_[rank]) {
    LinkState& link = links_[index];
    double beta = 1, slowdown = 1;
    for (const auto& [user, kind] : link.users) beta = std::max(beta, ranks_[user].beta[static_cast<std::size_t>(kind)]);
    for (const std::uint32_t slow : link.ports_of) slowdown = std::max(slowdown, ranks_[slow].port_slowdown);
    const double factor = beta * slowdown;
    if (factor != link.factor) machine_.set_bandwidth(link.link, link.bytes_per_s / factor);
    link.factor = factor;
  }
}

}  // namespace rehearse::sim
