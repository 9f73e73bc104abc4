#include "sim/engine/comm_plan.hpp"

#include <algorithm>
#include <set>

#include "sim/engine/serial_legs.hpp"

namespace rehearse::sim {
namespace {

// Links whose bandwidth nothing changes: no computation slows them, and no fault comes and goes.
bool links_keep_bandwidth(const System& system) {
  const bool steady =
      std::ranges::all_of(workloads::contended_phases, [&](workloads::Phase phase) { return system.gpu.contention_with(phase).beta == 1; });
  return steady && system.simulation.faults.spells.empty();
}

// Dispatch and combination of tokens have streams of their own.
bool in_turn(const workloads::Call& call) {
  return call.what.group != workloads::GroupKind::ep && call.what.group != workloads::GroupKind::etp;
}

}  // namespace

CommPlanner::CommPlanner(const System& system, const workloads::RankGrid& grid, const CommunicationModel& model,
                         const workloads::StepGraph& graph, const workloads::Folding& folding, const Prices& prices, Machine& machine,
                         std::span<const HostIndex> hosts, const Fold* fold)
    : system_(system),
      model_(model),
      graph_(graph),
      folding_(folding),
      prices_(prices),
      machine_(machine),
      hosts_(hosts),
      fold_(fold),
      wiring_(system),
      grid_(grid) {}

void CommPlanner::Draft::wait(std::size_t before, std::size_t after) {
  waits.emplace_back(before, after);
  ++legs[before].releases;
  ++legs[after].waits_for;
}

CommPlan CommPlanner::Draft::done() && {
  std::uint32_t first = 0;
  for (Leg& leg : legs) {
    leg.first_release = first;
    first += leg.releases;
  }
  releases.resize(waits.size());
  std::vector<std::uint32_t> filled(legs.size());
  for (const auto& [before, after] : waits) releases[legs[before].first_release + filled[before]++] = after;
  legs.shrink_to_fit();
  links.shrink_to_fit();
  return std::move(*this);
}

// Exchanges are the same flows in every pass, wherever no hash spreads their calls.
CommPlans CommPlanner::plans() {
  std::vector<PlanOfGroup> made;
  std::vector<std::uint32_t> as;  // [call] the first that is carried out like it
  std::map<std::tuple<const void*, std::uint32_t, int>, std::uint32_t> exchanges;
  for (std::uint32_t call = 0; call < graph_.calls.size(); ++call) {
    const workloads::Call& c = graph_.calls[call];
    if (c.what.exchange && shares_plans()) {
      const auto [it, added] = exchanges.try_emplace({c.what.exchange.get(), c.group, c.repeat}, call);
      as.push_back(it->second);
      if (!added) continue;
    } else {
      as.push_back(call);
    }
    Draft draft = plan(call);
    draft.host = host_of(members_of(call).front());
    made.push_back({std::move(draft).done(), c.group, in_turn(c)});
  }
  if (system_.simulation.collectives == Fidelity::step && links_keep_bandwidth(system_)) join_serial_legs(made);
  CommPlans all;
  auto next = made.begin();
  for (std::uint32_t call = 0; call < as.size(); ++call) as[call] == call ? all.add(std::move(next++->plan)) : all.add_as(as[call]);
  return all;
}

// Links of one call alone are not shared.
bool CommPlanner::shares_plans() const {
  return system_.simulation.routing != Routing::ecmp && system_.simulation.collectives != Fidelity::closed;
}

CommPlanner::Draft CommPlanner::plan(std::uint32_t call) {
  if (prices_.calls[call].kind == CallKind::copy) return plan_flows(call);
  switch (system_.simulation.collectives) {
    case Fidelity::closed:
      return plan_closed(call);
    case Fidelity::step:
      return plan_rounds(call);
    // Tensor-parallel collectives have their scale-up ports to themselves: nothing to gain from flows.
    case Fidelity::automatic:
      if (graph_.calls[call].what.group == workloads::GroupKind::tp) return plan_closed(call);
      break;
    case Fidelity::ring:
      break;
  }
  return plan_flows(call);
}

void CommPlanner::add_leg(Draft& plan, double delay_s, double bytes, const std::vector<LinkIndex>& links) {
  plan.legs.push_back({delay_s, bytes, static_cast<std::uint32_t>(plan.links.size()), static_cast<std::uint32_t>(links.size())});
  plan.links.insert(plan.links.end(), links.begin(), links.end());
}

// One timed activity: a private link of the rate that makes the closed form's time.
CommPlanner::Draft CommPlanner::plan_closed(std::uint32_t call) {
  const CallPrice& price = prices_.calls[call];
  const int repeat = graph_.calls[call].repeat;
  const double bytes = price.intra_bytes + price.inter_bytes;
  Draft plan;
  std::vector<LinkIndex> links;
  if (bytes > 0) {
    const PortKind kind = price.inter_bytes > 0 ? PortKind::nic : PortKind::scale_up;
    links.push_back(own_link(members_of(call), kind, bytes / price.transfer_s()));
  }
  add_leg(plan, price.alpha_s * repeat, bytes * repeat, links);
  return plan;
}

CommPlanner::Draft CommPlanner::plan_flows(std::uint32_t call) {
  const double alpha_s = prices_.calls[call].alpha_s * graph_.calls[call].repeat;
  const std::vector<Load> all = alike_once(loads(call), call);
  Draft plan;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Load& load = all[i];
    add_leg(plan, load.phase == 0 ? alpha_s : 0, load.bytes * graph_.calls[call].repeat, links(load, i, call));
    for (std::size_t before = 0; before < i; ++before) {
      if (all[before].phase + 1 == load.phase) plan.wait(before, i);
    }
  }
  if (plan.legs.empty()) add_leg(plan, alpha_s, 0, {});
  return plan;
}

std::vector<Load> CommPlanner::loads(std::uint32_t call) const {
  return loads_of(graph_.calls[call].what, prices_.calls[call], members_of(call), model_, wiring_, flow_of(call));
}

// The flows of all members together first; of single members those of the first of each class.
std::vector<Load> CommPlanner::alike_once(std::vector<Load> loads, std::uint32_t call) const {
  std::stable_partition(loads.begin(), loads.end(), [](const Load& load) { return load.member < 0; });
  const std::vector<int>& members = members_of(call);
  const auto class_of = [&](int member) { return folding_.class_of[static_cast<std::size_t>(members[static_cast<std::size_t>(member)])]; };
  std::map<std::uint32_t, int> first;
  for (int i = 0; i < static_cast<int>(members.size()); ++i) first.try_emplace(class_of(i), i);
  std::erase_if(loads, [&](const Load& load) { return load.member >= 0 && first.at(class_of(load.member)) != load.member; });
  return loads;
}

// The wire that stands for all of its class.
Wire CommPlanner::representative(Wire wire) const {
  if (fold_ != nullptr) {
    if (const auto it = fold_->wires.find(wire); it != fold_->wires.end()) return it->second;
  }
  const int owner = wiring_.owner(wire);
  return owner < 0 ? wire : wiring_.of_owner(wire, folding_.ranks[folding_.class_of[static_cast<std::size_t>(owner)]].rank);
}

std::vector<LinkIndex> CommPlanner::links(const Load& load, std::size_t index, std::uint32_t call) {
  Times often;
  for (const auto& [wire, times] : load.wires) {
    int& most = often[representative(wire)];
    most = std::max(most, times);
  }
  std::vector<LinkIndex> links;
  for (const auto& [wire, own] : often) {
    const bool counted = fold_ != nullptr && fold_->wires.contains(wire);
    links.insert(links.end(), static_cast<std::size_t>(counted ? times(wire, load, index, call) : own), link_of(wire));
  }
  return links;
}

// How often all flows that this one stands for load that wire together.
int CommPlanner::times(Wire stands_for, const Load& load, std::size_t index, std::uint32_t call) {
  const bool copy = prices_.calls[call].kind == CallKind::copy;
  if (!copy && load.member < 0) return times_of_all(call).at(index).at(stands_for);
  const auto class_of = [&](int rank) { return folding_.class_of[static_cast<std::size_t>(rank)]; };
  const std::uint32_t own = class_of(members_of(call)[static_cast<std::size_t>(copy ? 0 : load.member)]);
  return static_cast<int>(std::ranges::count_if(wiring_.users(stands_for), [&](int user) { return class_of(user) == own; }));
}

const std::vector<CommPlanner::Times>& CommPlanner::times_of_all(std::uint32_t call) {
  const workloads::Call& c = graph_.calls[call];
  const auto [it, added] = times_.try_emplace({c.group, c.what.kind, algorithm_and_protocol(prices_.calls[call]), c.what.exchange.get()});
  if (added) it->second = one_way(c) ? count_messages(call) : count_groups(call);
  return it->second;
}

// Messages from all ranks of the sender's class to the receiver's stage.
std::vector<CommPlanner::Times> CommPlanner::count_messages(std::uint32_t call) const {
  const std::vector<int>& members = members_of(call);
  const int stage = grid_.coordinates(members[1]).pp;
  Times times;
  for (const int from : fold_->members[folding_.class_of[static_cast<std::size_t>(members[0])]]) {
    for (const auto& [wire, often] : load_of_message(from, grid_.at_stage(from, stage), 1, -1, wiring_, 0).wires) {
      if (representative(wire) == wire) times[wire] += often;
    }
  }
  return {times};
}

// Flows of all groups of the class.
std::vector<CommPlanner::Times> CommPlanner::count_groups(std::uint32_t call) const {
  const workloads::Communication& what = graph_.calls[call].what;
  const GroupClasses& list = fold_->groups.at(what.group);
  const auto own = static_cast<std::size_t>(list.group_of[static_cast<std::size_t>(members_of(call).front())]);
  std::vector<Times> times;
  for (const int group : list.classes.at(list.colour_of[own])) {
    const std::vector<int>& members = list.groups[static_cast<std::size_t>(group)];
    std::size_t index = 0;
    for (const Load& load : loads_of(what, model_.price(what, members), members, model_, wiring_, 0)) {
      if (load.member >= 0) continue;
      times.resize(std::max(times.size(), ++index));
      for (const auto& [wire, often] : load.wires) {
        if (representative(wire) == wire) times[index - 1][wire] += often;
      }
    }
  }
  return times;
}

LinkIndex CommPlanner::link_of(Wire wire) {
  const auto [it, added] = links_.try_emplace(wire, 0);
  if (!added) return it->second;
  const double rate = wiring_.bytes_per_s(wire);
  it->second = machine_.add_link(rate);
  const auto kind = wiring_.port_kind(wire);
  std::set<std::uint32_t> simulated;
  const std::vector<int> users = wiring_.users(wire);
  for (const int user : users) simulated.insert(folding_.class_of[static_cast<std::size_t>(user)]);
  for (const std::uint32_t user : simulated) note_port(user, *kind, it->second, rate);
  if (kind == PortKind::nic) note_flapping(users, it->second, rate);
  return it->second;
}

// A link of one call alone.
LinkIndex CommPlanner::own_link(const std::vector<int>& members, PortKind kind, double bytes_per_s) {
  const LinkIndex link = machine_.add_link(bytes_per_s);
  std::set<std::uint32_t> simulated;
  for (const int member : members) simulated.insert(folding_.class_of[static_cast<std::size_t>(member)]);
  for (const std::uint32_t user : simulated) note_port(user, kind, link, bytes_per_s);
  if (kind == PortKind::nic) note_flapping(members, link, bytes_per_s);
  return link;
}

void CommPlanner::note_port(std::uint32_t simulated, PortKind kind, LinkIndex link, double bytes_per_s) {
  port_links_.push_back({simulated, kind, link, bytes_per_s});
}

// With the simulated ranks of these ranks' classes: all ranks of a class suffer the same.
void CommPlanner::note_flapping(const std::vector<int>& ranks, LinkIndex link, double bytes_per_s) {
  std::set<std::uint32_t> simulated;
  for (const int rank : ranks) {
    if (system_.simulation.faults.flapping.contains(rank)) simulated.insert(folding_.class_of[static_cast<std::size_t>(rank)]);
  }
  for (const std::uint32_t user : simulated) flapping_.push_back({user, PortKind::nic, link, bytes_per_s});
}

}  // namespace rehearse::sim
