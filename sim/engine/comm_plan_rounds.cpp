// Collectives round by round: every transfer of every round as legs of its own, or one for all that are alike.
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/engine/comm_plan.hpp"
#include "workloads/collective.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Round;
using workloads::Transfer;

// What a call costs beside its rounds is paid before its first transfers.
bool first(const workloads::Dependency& needs) { return needs.before_alpha.empty() && needs.before_bytes < 0; }

}  // namespace

// Every transfer of every round: its alpha as a leg, then its bytes as another (workloads/collective.hpp says which wait for which).
CommPlanner::Draft CommPlanner::plan_rounds(std::uint32_t call) {
  const workloads::Call& c = graph_.calls[call];
  const CallPrice& price = prices_.calls[call];
  if (price.kind == CallKind::none || one_way(c) || flows_in_every_round(c.what, price, members_of(call), model_)) return plan_flows(call);
  if (c.what.exchange) return pair_by_pair(call);
  if (alike(call)) return plan_alike_rounds(call);
  const std::vector<Round> rounds = rounds_of(call);
  Draft plan;
  plan.repeat = c.repeat;
  for (const Round& round : rounds) {
    for (const Transfer& t : round.transfers) {
      add_leg(plan, alpha_s(t, call), 0, {});
      add_transfer(plan, t, 0, t.bytes, call);
    }
  }
  const std::vector<workloads::Dependency> dependencies = workloads::dependencies(rounds);
  for (std::size_t i = 0; i < dependencies.size(); ++i) {  // transfer i is the legs 2i (alpha) and 2i + 1 (bytes)
    plan.wait(2 * i, 2 * i + 1);
    for (const std::uint32_t before : dependencies[i].before_alpha) plan.wait(2UL * before + 1, 2 * i);
    if (first(dependencies[i])) plan.legs[2 * i].delay_s += price.call_s;
    if (dependencies[i].before_bytes >= 0) plan.wait(2 * static_cast<std::size_t>(dependencies[i].before_bytes) + 1, 2 * i + 1);
  }
  return plan;
}

// All members in one class: then all transfers of a round that stay inside domains are alike, and all that cross.
bool CommPlanner::alike(std::uint32_t call) const {
  if (fold_ == nullptr) return false;
  const std::vector<int>& members = members_of(call);
  const auto class_of = [&](int rank) { return folding_.class_of[static_cast<std::size_t>(rank)]; };
  return std::ranges::all_of(members, [&](int rank) { return class_of(rank) == class_of(members.front()); }) &&
         rounds_rotate(graph_.calls[call].what, members, model_, wiring_);
}

std::vector<Round> CommPlanner::rounds_of(std::uint32_t call) const {
  const workloads::Communication& what = graph_.calls[call].what;
  if (what.kind == CollectiveKind::send_recv) return {{messages_of(what, prices_.calls[call], members_of(call), model_)}};
  const workloads::GroupShape shape = model_.shape(members_of(call));
  std::vector<Round> rounds = prices_.calls[call].collective->rounds(what.kind, shape, what.bytes);
  for (Round& round : rounds) prices_.calls[call].weigh(round.transfers, shape);
  return rounds;
}

bool CommPlanner::crosses(const Transfer& t, std::uint32_t call) const {
  const std::vector<int>& members = members_of(call);
  return !wiring_.same_domain(members[static_cast<std::size_t>(t.from)], members[static_cast<std::size_t>(t.to)]);
}

double CommPlanner::alpha_s(const Transfer& t, std::uint32_t call) const {
  const std::vector<int>& members = members_of(call);
  const workloads::Collective* collective = prices_.calls[call].collective;
  const bool reads = collective != nullptr && collective->reads_peers();
  return model_.latency_s(members[static_cast<std::size_t>(t.from)], members[static_cast<std::size_t>(t.to)], reads,
                          prices_.calls[call].protocol);
}

// One transfer stands for all of its round that are like it.
CommPlanner::Draft CommPlanner::plan_alike_rounds(std::uint32_t call) {
  const workloads::Communication& what = graph_.calls[call].what;
  const workloads::Collective* collective = prices_.calls[call].collective;
  if (collective != nullptr && collective->laps(what.kind)) return plan_ring_rounds(call);
  const std::vector<Round> rounds = rounds_of(call);
  const std::vector<workloads::Dependency> dependencies = workloads::dependencies(rounds);
  Draft plan;
  plan.repeat = graph_.calls[call].repeat;
  std::vector<std::size_t> leg_of;  // [transfer] of its alpha; that of its bytes is the next
  for (const Round& round : rounds) {
    std::map<bool, std::vector<Transfer>> alike;
    for (const Transfer& t : round.transfers) alike[crosses(t, call)].push_back(t);
    std::map<bool, std::size_t> legs;
    for (const auto& [crossing, transfers] : alike) {
      legs[crossing] = plan.legs.size();
      add_leg(plan, alpha_s(transfers.front(), call), 0, {});
      add_leg(plan, 0, transfers.front().bytes, links_of_alike(transfers, call));
      plan.wait(plan.legs.size() - 2, plan.legs.size() - 1);
    }
    std::set<std::size_t> told;
    for (const Transfer& t : round.transfers) {
      const std::size_t leg = legs.at(crosses(t, call));
      const workloads::Dependency& needs = dependencies[leg_of.size()];
      leg_of.push_back(leg);
      if (!told.insert(leg).second) continue;
      if (first(needs)) plan.legs[leg].delay_s += prices_.calls[call].call_s;
      std::set<std::size_t> before;
      for (const std::uint32_t transfer : needs.before_alpha) before.insert(leg_of[transfer] + 1);
      for (const std::size_t one : before) plan.wait(one, leg);
      if (needs.before_bytes >= 0) plan.wait(leg_of[static_cast<std::size_t>(needs.before_bytes)] + 1, leg + 1);
    }
  }
  return plan;
}

// A ring of D domains of g members, on as many channels as a domain has members: all edges in the same place of their domains are alike,
// and so are all channels. In every round each edge passes on one part; the next edge gets it a round later.
CommPlanner::Draft CommPlanner::plan_ring_rounds(std::uint32_t call) {
  const workloads::Communication& what = graph_.calls[call].what;
  const int n = static_cast<int>(members_of(call).size()), domains = model_.shape(members_of(call)).domains();
  const int places = domains == 1 ? 1 : n / domains;
  const int rounds = (what.kind == CollectiveKind::all_reduce ? 2 : 1) * (n - 1);
  const CallPrice& price = prices_.calls[call];
  const double bytes = what.bytes / n / places;
  std::map<bool, std::vector<Transfer>> edges;
  for (const Transfer& t : messages_of(what, prices_.calls[call], members_of(call), model_)) edges[crosses(t, call)].push_back(t);
  std::map<bool, std::vector<LinkIndex>> links;
  for (const auto& [crossing, some] : edges) links[crossing] = links_of_alike(some, call);
  Draft plan;
  plan.repeat = graph_.calls[call].repeat;
  const auto leg = [&](int round, int place) {
    return 2 * (static_cast<std::size_t>(round) * static_cast<std::size_t>(places) + static_cast<std::size_t>(place));
  };
  for (int round = 0; round < rounds; ++round) {
    for (int place = 0; place < places; ++place) {
      const bool crossing = domains > 1 && place + 1 == places;
      add_leg(plan, alpha_s(edges.at(crossing).front(), call) + (round == 0 ? price.call_s : 0), 0, {});
      add_leg(plan, 0, bytes * (crossing ? price.nic_overhead : price.scale_up_overhead), links.at(crossing));
      plan.wait(leg(round, place), leg(round, place) + 1);
      if (round == 0) continue;
      plan.wait(leg(round - 1, (place + places - 1) % places) + 1, leg(round, place));
      plan.wait(leg(round - 1, place) + 1, leg(round, place) + 1);
    }
  }
  return plan;
}

// An exchange as its point-to-point messages, all at once.
CommPlanner::Draft CommPlanner::pair_by_pair(std::uint32_t call) {
  Draft plan;
  plan.repeat = graph_.calls[call].repeat;
  for (const Transfer& t : messages_of(graph_.calls[call].what, prices_.calls[call], members_of(call), model_)) {
    add_transfer(plan, t, prices_.calls[call].alpha_s, t.bytes, call);
  }
  return plan;
}

std::vector<Wire> CommPlanner::wires_of(const Transfer& t, const std::vector<int>& members, std::uint32_t call) const {
  const auto rank = [&](int member) { return members[static_cast<std::size_t>(member)]; };
  std::vector<Wire> wires;
  wiring_.route(rank(t.from), rank(t.to), t.rail_of < 0 ? -1 : wiring_.rail_of(rank(t.rail_of)), flow_of(call), wires);
  return wires;
}

void CommPlanner::add_transfer(Draft& plan, const Transfer& t, double delay_s, double bytes, std::uint32_t call) {
  std::vector<LinkIndex> links;
  if (bytes > 0) {
    std::set<Wire> told;  // a message may pass several wires of one class, which are counted together
    for (const Wire wire : wires_of(t, members_of(call), call)) {
      const Wire stands_for = representative(wire);
      if (!told.insert(stands_for).second) continue;
      const bool counted = fold_ != nullptr && fold_->wires.contains(stands_for);
      links.insert(links.end(), static_cast<std::size_t>(counted ? times_of_message(stands_for, t, call) : 1), link_of(stands_for));
    }
  }
  add_leg(plan, delay_s, bytes, links);
}

// How often the same transfer of all groups of the class loads that wire.
int CommPlanner::times_of_message(Wire stands_for, const Transfer& t, std::uint32_t call) {
  const GroupClasses& list = fold_->groups.at(graph_.calls[call].what.group);
  const auto [it, added] = times_of_messages_.try_emplace({graph_.calls[call].group, t.from, t.to, t.rail_of});
  if (added) {
    const auto own = static_cast<std::size_t>(list.group_of[static_cast<std::size_t>(members_of(call).front())]);
    for (const int group : list.classes.at(list.colour_of[own])) {
      for (const Wire wire : wires_of(t, list.groups[static_cast<std::size_t>(group)], call)) ++it->second[wire];
    }
  }
  return it->second.at(stands_for);
}

std::vector<LinkIndex> CommPlanner::links_of_alike(const std::vector<Transfer>& transfers, std::uint32_t call) {
  Times all;
  for (const Transfer& t : transfers) {
    for (const Wire wire : wires_of(t, members_of(call), call)) ++all[representative(wire)];
  }
  const int members = static_cast<int>(members_of(call).size());
  std::vector<LinkIndex> links;
  for (const auto& [wire, times] : all) {
    if (times % members != 0) throw std::logic_error("transfers of a round that are not alike were folded");
    links.insert(links.end(), static_cast<std::size_t>(times / members), link_of(wire));
  }
  return links;
}

}  // namespace rehearse::sim
