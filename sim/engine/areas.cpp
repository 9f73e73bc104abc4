#include "sim/engine/areas.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>

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
      if (workloads::is_of_replicas(first.stream)) {
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
    for (std::uint32_t call = 0; call < graph_.calls.size(); ++call) {
      if (!exchange_[call] && rank_of_[call]) use(plans[call].links, *rank_of_[call]);
    }
    // A port's bandwidth goes by what all do that share it, also where an exchange alone uses it.
    for (const PortLink& port : ports) use({&port.link, 1}, port.rank);
    connect_exchanges(plans);
  }

  void use(std::span<const LinkIndex> links, std::uint32_t rank) {
    for (const LinkIndex link : links) {
      if (link >= user_.size()) user_.resize(link + 1UL);
      if (user_[link]) connected_.join(*user_[link], rank);
      user_[link] = rank;
    }
  }

  // What goes on over the links of an exchange is slowed by it, and must not be ahead of it. One whose members are all connected goes on
  // among them as any other call does.
  void connect_exchanges(const CommPlans& plans) {
    std::vector<std::uint32_t> open = of_each_call(exchanges_);  // between ranks that are not connected
    std::vector<std::uint32_t> takes_part(graph_.ranks.size());  // [connected_.of(rank)] the last exchange that one of them is in, from 1
    std::uint32_t exchange = 0;
    for (bool connects = true; connects;) {
      const std::size_t were_open = open.size();
      connects = false;
      std::erase_if(open, [&](std::uint32_t joint) {
        ++exchange;
        const std::span<const OpId> members = graph_.members(joint);
        const Op first = graph_.op(members.front());
        const std::vector<LinkIndex> links = without_repeats(plans[first.item].links);
        for (const OpId member : members) takes_part[connected_.of(graph_.op(member).rank)] = exchange;
        if (std::ranges::all_of(members, [&](OpId member) { return connected_.of(graph_.op(member).rank) == connected_.of(first.rank); })) {
          use(links, first.rank);
          return true;
        }
        for (const LinkIndex link : links) {
          if (link >= user_.size() || !user_[link] || takes_part[connected_.of(*user_[link])] == exchange) continue;
          connected_.join(*user_[link], first.rank);
          takes_part[connected_.of(first.rank)] = exchange;
          connects = true;
        }
        return false;
      });
      connects = connects || open.size() < were_open;
    }
  }

  // The first of each call.
  [[nodiscard]] std::vector<std::uint32_t> of_each_call(const std::vector<std::uint32_t>& joints) const {
    std::vector<bool> seen(graph_.calls.size());
    std::vector<std::uint32_t> first;
    for (const std::uint32_t joint : joints) {
      const std::uint32_t call = graph_.op(graph_.members(joint).front()).item;
      if (!seen[call]) first.push_back(joint);
      seen[call] = true;
    }
    return first;
  }

  [[nodiscard]] static std::vector<LinkIndex> without_repeats(std::vector<LinkIndex> links) {  // round by round the same ones again
    std::ranges::sort(links);
    links.erase(std::unique(links.begin(), links.end()), links.end());
    return links;
  }

  const StepGraph& graph_;
  config::Islands connected_;                          // ranks
  std::vector<std::optional<std::uint32_t>> rank_of_;  // [call] one that takes part; none of exchanges
  std::vector<bool> exchange_;                         // [call]
  std::vector<std::uint32_t> exchanges_;               // joints
  std::vector<std::optional<std::uint32_t>> user_;     // [link] the last rank found to use it
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
      exchanges_(areas.joints.size()),
      next_s_(of_.size()) {}

AreaIndex Exchanges::index_of(OpId member) const { return areas_.of_rank[graph_.op(member).rank]; }

Exchanges::Place Exchanges::place_of(std::uint32_t joint) const {
  return static_cast<Place>(std::ranges::lower_bound(areas_.joints, joint) - areas_.joints.begin());
}

void Exchanges::comes(OpId member, std::uint32_t joint) {
  Area& area = of_[index_of(member)];
  const Place place = place_of(joint);
  area.waiting.push_back(place);
  if (apart_) {
    area.alone_until_s = std::min(area.alone_until_s, can_begin_s(place));
  } else {
    area.known = false;
  }
}

void Exchanges::begins(std::uint32_t joint) {
  const Place place = place_of(joint);
  exchanges_[place] = {};
  for (const OpId member : graph_.members(joint)) {
    Area& area = of_[index_of(member)];
    area.waiting.erase(std::ranges::find(area.waiting, place));
    ++area.under_way;
    area.known = false;
  }
}

void Exchanges::ends(std::uint32_t joint) {
  for (const OpId member : graph_.members(joint)) {
    Area& area = of_[index_of(member)];
    --area.under_way;
    area.known = false;
  }
}

double Exchanges::next_s(AreaIndex index) const {
  return of_[index].known ? std::min(of_[index].alone_until_s, machine_.next_s(index)) : 0;
}

// No more than when it can begin; no more than that where the answer is beyond `enough_s`. `next_s`: of an area.
template <class Next>
double Exchanges::earliest_s(Place place, double enough_s, Next next_s) {
  Exchange& exchange = exchanges_[place];
  if (!exchange.looked_at) {
    exchange.looked_at = true;
    for (const OpId member : graph_.members(areas_.joints[place])) exchange.missing.push_back({member, index_of(member)});
  }
  std::erase_if(exchange.missing, [&](const Member& member) {
    const double arrive_s = run_.arrive_s[member.op];
    if (arrive_s == never_s) return false;
    exchange.last_s = std::max(exchange.last_s, arrive_s);
    return true;
  });
  double latest = exchange.last_s;
  for (auto member = exchange.missing.begin(); member != exchange.missing.end() && latest < enough_s; ++member) {
    latest = std::max(latest, next_s(member->area));
  }
  return latest;
}

// When exchanges that areas have come to can begin, and how far each area can then go on; members that were looked at.
std::size_t Exchanges::look_ahead() {
  std::size_t looked_at = of_.size();
  for (AreaIndex i = 1; i < of_.size(); ++i) next_s_[i] = next_s(i);
  for (Exchange& exchange : exchanges_) exchange.can_begin_s = unknown;
  for (Area& area : of_) {
    area.alone_until_s = area.under_way > 0 ? quiet_until_s_ : never_s;
    for (const Place place : area.waiting) {
      Exchange& exchange = exchanges_[place];
      if (exchange.can_begin_s == unknown) {
        exchange.can_begin_s = earliest_s(place, never_s, [this](AreaIndex index) { return next_s_[index]; });
        looked_at += exchange.missing.size();
      }
      area.alone_until_s = std::min(area.alone_until_s, exchange.can_begin_s);
    }
    area.known = true;
  }
  return looked_at;
}

// The same of an exchange that nobody had come to when areas parted. Whichever thread asks first: all come to the same.
double Exchanges::can_begin_s(Place place) {
  const std::atomic_ref can_begin_s(exchanges_[place].can_begin_s);
  double latest = can_begin_s.load(std::memory_order_relaxed);
  if (latest != unknown) return latest;
  for (const OpId member : graph_.members(areas_.joints[place])) latest = std::max(latest, next_s_[index_of(member)]);
  can_begin_s.store(latest, std::memory_order_relaxed);
  return latest;
}

std::size_t Exchanges::part() {
  quiet_until_s_ = machine_.quiet_until_s();
  const bool known = std::ranges::all_of(of_, [](const Area& area) { return area.known && area.under_way == 0; });
  std::size_t looked_at = look_ahead();
  if (!known) looked_at += look_ahead();
  apart_ = true;
  return looked_at;
}

bool Exchanges::goes_on(AreaIndex index, double until_s) {
  Area& area = of_[index];
  if (apart_) return until_s < area.alone_until_s;
  if (area.under_way > 0) return false;
  if (area.known && until_s < area.alone_until_s) return true;
  double until = never_s;
  for (const Place place : area.waiting) {
    until = std::min(until, earliest_s(place, until, [this](AreaIndex other) { return of_[other].under_way > 0 ? 0 : next_s(other); }));
  }
  area.alone_until_s = until;
  area.known = true;
  return until_s < until;
}

}  // namespace rehearse::sim
