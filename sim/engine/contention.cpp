#include "sim/engine/contention.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "sim/engine/graph_runner.hpp"

namespace rehearse::sim {
namespace {

using workloads::Phase;

constexpr std::size_t uncontended = workloads::contended_phases.size();

// [phase] index into contended_phases; uncontended: of none.
constexpr auto class_of = [] {
  std::array<std::size_t, workloads::phase_count> classes{};
  classes.fill(uncontended);
  for (std::size_t i = 0; i < uncontended; ++i) classes[static_cast<std::size_t>(workloads::contended_phases[i])] = i;
  return classes;
}();

}  // namespace

std::vector<double> contention_speeds(const Gpu& gpu, std::span<const double> slowdowns) {
  std::vector<double> speeds{1};
  for (const Phase phase : workloads::contended_phases) speeds.push_back(1 / gpu.contention_with(phase).alpha);
  const std::vector<double> full = speeds;
  for (const double slowdown : slowdowns) {
    for (const double speed : full) speeds.push_back(speed / slowdown);
  }
  return speeds;
}

Contention::Contention(const Gpu& gpu, std::size_t ranks, const std::vector<PortLink>& ports, const std::vector<PortLink>& flapping,
                       const std::vector<HostIndex>& hosts, Machine& machine)
    : ranks_(ranks), links_of_rank_(ranks), hosts_(hosts), machine_(machine) {
  for (std::size_t i = 0; i < classes; ++i) {
    pairs_[i] = gpu.contention_with(workloads::contended_phases[i]);
    neutral_ = neutral_ && pairs_[i].alpha == 1 && pairs_[i].beta == 1;
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

void Contention::communicates(std::uint32_t rank, Phase phase, const CallPrice& price, int change) {
  const std::size_t which = class_of[static_cast<std::size_t>(phase)];
  if (neutral_ || which == uncontended) return;
  RankState& state = ranks_[rank];
  std::array<int, port_kinds>& active = state.active[which];
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
  for (std::size_t i = 0; i < classes; ++i) {
    const std::array<int, port_kinds>& active = state.active[i];
    if (std::accumulate(active.begin(), active.end(), 0) == 0 || pairs_[i].alpha <= alpha) continue;
    alpha = pairs_[i].alpha;
    slowest = i + 1;
  }
  return slowest;
}

std::array<double, port_kinds> Contention::betas_of(const RankState& state) const {
  std::array<double, port_kinds> betas = all_one;
  if (!state.computing || state.communications == 0) return betas;
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t kind = 0; kind < port_kinds; ++kind) {
      if (state.active[i][kind] > 0) betas[kind] = std::max(betas[kind], pairs_[i].beta);
    }
  }
  return betas;
}

void Contention::update(std::uint32_t rank) {
  RankState& state = ranks_[rank];
  const std::size_t speed = state.slowdown * (classes + 1) + speed_of(state);
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
