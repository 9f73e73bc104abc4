#include "sim/engine/areas.hpp"

#include <algorithm>
#include <optional>

#include "config/islands.hpp"

namespace rehearse::sim {
namespace {

using workloads::Op;
using workloads::OpId;
using workloads::OpKind;
using workloads::StepGraph;
using workloads::Stream;

class Finder {
 public:
  Finder(const StepGraph& graph, const CommPlans& plans, const std::vector<PortLink>& ports)
      : graph_(graph), connected_(graph.ranks.size()), rank_of_(graph.calls.size()), exchange_(graph.calls.size()) {
    each_communication();
    connect_links(plans, ports);
  }

  Areas areas() && {
    Areas out;
    std::vector<AreaIndex> number(graph_.ranks.size());
    AreaIndex areas = 0;
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      AreaIndex& its = number[connected_.of(rank)];
      if (its == 0) its = ++areas;
      out.of_rank.push_back(its);
    }
    if (areas < 2) return {};
    out.between.resize(graph_.calls.size());
    for (const std::uint32_t joint : exchanges_) {
      const std::span<const OpId> members = graph_.members(joint);
      const auto area = [&](OpId member) { return out.of_rank[graph_.op(member).rank]; };
      if (std::ranges::all_of(members, [&](OpId member) { return area(member) == area(members.front()); })) continue;
      for (const OpId member : members) out.between[graph_.op(member).item] = true;
      out.joints.push_back(joint);
    }
    return out;
  }

 private:
  // Connects the members of each call but exchanges between replicas, which it lists.
  void each_communication() {
    for (std::uint32_t joint = 0; joint < graph_.joints(); ++joint) {
      const std::span<const OpId> members = graph_.members(joint);
      const Op first = graph_.op(members.front());
      if (first.stream == Stream::dp) {
        exchanges_.push_back(joint);
        for (const OpId member : members) exchange_[graph_.op(member).item] = true;
      } else if (!rank_of_[first.item]) {
        for (const OpId member : members) connected_.join(graph_.op(member).rank, first.rank);
        rank_of_[first.item] = first.rank;
      }
    }
    for (const workloads::RankBlock& block : graph_.blocks()) {
      const std::vector<Op>& ops = graph_.program(block).ops;
      for (std::uint32_t at = 0; at < ops.size(); ++at) {
        if (ops[at].kind != OpKind::p2p && ops[at].kind != OpKind::copy) continue;
        const Op op = graph_.op(block.first + at);
        if (op.kind == OpKind::p2p) connected_.join(op.rank, graph_.receiver(block.first + at));
        rank_of_[op.item] = op.rank;
      }
    }
  }

  void connect_links(const CommPlans& plans, const std::vector<PortLink>& ports) {
    std::vector<std::optional<std::uint32_t>> user;  // [link]
    for (std::uint32_t call = 0; call < graph_.calls.size(); ++call) {
      if (exchange_[call] || !rank_of_[call]) continue;
      for (const LinkIndex link : plans[call].links) {
        if (link >= user.size()) user.resize(link + 1UL);
        if (user[link]) connected_.join(*user[link], *rank_of_[call]);
        user[link] = rank_of_[call];
      }
    }
    // What goes on over the links of an exchange is slowed by it, and must not be ahead of it.
    std::vector<std::uint32_t> takes_part(graph_.ranks.size());  // [connected_.of(rank)] the last exchange that one of them is in, from 1
    std::vector<bool> seen(graph_.calls.size());
    std::vector<LinkIndex> links;
    std::uint32_t exchange = 0;
    for (const std::uint32_t joint : exchanges_) {
      const std::span<const OpId> members = graph_.members(joint);
      const Op first = graph_.op(members.front());
      if (seen[first.item]) continue;
      seen[first.item] = true;
      ++exchange;
      for (const OpId member : members) takes_part[connected_.of(graph_.op(member).rank)] = exchange;
      links = plans[first.item].links;  // round by round the same ones again and again
      std::ranges::sort(links);
      links.erase(std::unique(links.begin(), links.end()), links.end());
      for (const LinkIndex link : links) {
        if (link >= user.size() || !user[link] || takes_part[connected_.of(*user[link])] == exchange) continue;
        connected_.join(*user[link], first.rank);
      }
    }
    // A port's bandwidth goes by what all do that share it, also where an exchange alone uses it.
    for (const PortLink& port : ports) {
      if (port.link >= user.size()) user.resize(port.link + 1UL);
      if (user[port.link]) connected_.join(*user[port.link], port.rank);
      user[port.link] = port.rank;
    }
  }

  const StepGraph& graph_;
  config::Islands connected_;                          // ranks
  std::vector<std::optional<std::uint32_t>> rank_of_;  // [call] one that takes part; none of exchanges
  std::vector<bool> exchange_;                         // [call]
  std::vector<std::uint32_t> exchanges_;               // joints
};

}  // namespace

Areas areas_of(const StepGraph& graph, const CommPlans& plans, const std::vector<PortLink>& ports) {
  return Finder(graph, plans, ports).areas();
}

Exchanges::Exchanges(const Areas& areas, const StepGraph& graph, const Machine& machine, const Execution& run)
    : areas_(areas),
      graph_(graph),
      machine_(machine),
      run_(run),
      of_(*std::ranges::max_element(areas.of_rank) + 1UL),
      next_s_(of_.size()),
      can_begin_s_(areas.joints.size()),
      begun_(areas.joints.size()) {}

Exchanges::Area& Exchanges::area_of(OpId member) { return of_[areas_.of_rank[graph_.op(member).rank]]; }

void Exchanges::comes(OpId member, std::uint32_t joint) {
  Area& area = area_of(member);
  area.waiting.push_back(joint);
  if (apart_) {
    area.alone_until_s = std::min(area.alone_until_s, can_begin_s_[place_of(joint)]);
  } else {
    area.known = false;
  }
}

void Exchanges::begins(std::uint32_t joint) {
  begun_[place_of(joint)] = true;
  for (const OpId member : graph_.members(joint)) {
    Area& area = area_of(member);
    area.waiting.erase(std::ranges::find(area.waiting, joint));
    ++area.under_way;
    area.known = false;
  }
}

void Exchanges::ends(std::uint32_t joint) {
  for (const OpId member : graph_.members(joint)) --area_of(member).under_way;
}

// When it can begin; no more than that where the answer is beyond `enough_s`.
double Exchanges::earliest_s(std::uint32_t joint, double enough_s) const {
  double latest = 0;
  for (const OpId member : graph_.members(joint)) {
    double own_s = run_.arrive_s[member];
    if (own_s == never_s) {
      const AreaIndex index = areas_.of_rank[graph_.op(member).rank];
      const Area& area = of_[index];
      own_s = area.under_way > 0 || !area.known ? 0 : std::min(area.alone_until_s, machine_.next_s(index));
    }
    latest = std::max(latest, own_s);
    if (latest >= enough_s) return latest;
  }
  return latest;
}

std::size_t Exchanges::place_of(std::uint32_t joint) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(areas_.joints, joint) - areas_.joints.begin());
}

// When each exchange can begin, and how far each area can then go on; members that were looked at.
std::size_t Exchanges::look_ahead() {
  std::size_t looked_at = of_.size();
  for (AreaIndex i = 1; i < of_.size(); ++i) {
    const Area& area = of_[i];
    next_s_[i] = area.under_way > 0 || !area.known ? 0 : std::min(area.alone_until_s, machine_.next_s(i));
  }
  for (std::size_t i = 0; i < can_begin_s_.size(); ++i) {
    if (begun_[i]) continue;
    const std::span<const OpId> members = graph_.members(areas_.joints[i]);
    looked_at += members.size();
    double latest = 0;
    for (const OpId member : members) {
      const double arrive_s = run_.arrive_s[member];
      latest = std::max(latest, arrive_s == never_s ? next_s_[areas_.of_rank[graph_.op(member).rank]] : arrive_s);
    }
    can_begin_s_[i] = latest;
  }
  for (Area& area : of_) {
    area.alone_until_s = never_s;
    for (const std::uint32_t joint : area.waiting) area.alone_until_s = std::min(area.alone_until_s, can_begin_s_[place_of(joint)]);
    area.known = true;
  }
  return looked_at;
}

std::size_t Exchanges::part() {
  const bool known = std::ranges::all_of(of_, &Area::known);
  std::size_t looked_at = look_ahead();
  if (!known) looked_at += look_ahead();
  apart_ = true;
  return looked_at;
}

bool Exchanges::goes_on(AreaIndex index, double until_s) {
  Area& area = of_[index];
  if (area.under_way > 0) return false;
  if (apart_) return until_s < area.alone_until_s;
  if (area.known && until_s < area.alone_until_s) return true;
  double until = never_s;
  for (const std::uint32_t joint : area.waiting) until = std::min(until, earliest_s(joint, until));
  area.alone_until_s = until;
  area.known = true;
  return until_s < until;
}

}  // namespace rehearse::sim
