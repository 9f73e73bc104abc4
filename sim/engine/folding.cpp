#include "sim/engine/folding.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "sim/engine/call_loads.hpp"
#include "sim/engine/pair_trunks.hpp"
#include "sim/engine/step_calls.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/routing.hpp"

namespace rehearse::sim {
namespace {

using workloads::Communication;
using workloads::GroupKind;

constexpr double probe_bytes = 1 << 20;  // any size serves to tell two places on the cluster apart
Colour signature(const CallPrice& price) {
  Colour colour = std::hash<std::string>{}(price.algorithm);
  for (const double term : {price.alpha_s, price.intra_bytes, price.inter_bytes, price.intra_bytes_per_s, price.inter_bytes_per_s}) {
    colour = chain(colour, term);
  }
  return colour;
}

std::size_t distinct(Colours colours) {
  std::ranges::sort(colours);
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

// What one entity (a group, a message to a neighbour stage, a rank's copies) puts on a wire.
struct Attachment {
  std::uint32_t entity = 0, wire = 0;
  std::uint64_t label = 0;  // how often, in which kind of flow
};

// Entities of one kind, each with members; and the entities that a rank must tell apart from others.
struct Entities {
  Colours initial, colour, from_wires;
  std::vector<Attachment> attachments;
};

// What a step communicates: each collective on each kind of group once.
std::vector<Communication> communications(const workloads::Workload& workload, const workloads::Compiled& compiled) {
  std::vector<Communication> all;
  const workloads::StepGraph graph = workloads::build_step(workload, compiled, workloads::folded_by_stage(workload));
  std::set<std::tuple<GroupKind, workloads::CollectiveKind, double, bool>> seen;
  for (const workloads::Call& call : graph.calls) {
    const Communication& what = call.what;
    if (seen.emplace(what.group, what.kind, what.bytes, what.exchange != nullptr).second) all.push_back(what);
  }
  return all;
}

class Refinement {
 public:
  Refinement(const System& system, const workloads::Workload& workload, const CommunicationModel& model, std::vector<Communication> calls)
      : step_(system, workload, model, std::move(calls)) {
    even_ = !workload.model.moe || workloads::RoutingRegistry::get(workload.experts.routing).even();
    for (const auto& [kind, list] : step_.groups) entities_[kind].initial.resize(list.groups.size());
    alone_.initial.assign(static_cast<std::size_t>(step_.grid.size()), 0);
    colour_ranks(system.simulation.faults);
    colour_groups();
    colour_neighbours();
    settle("places in nodes, leaves and pods");
    attach_ports_ = !step_.wiring.private_ports() || !step_.all_aligned();
    by_rounds_ = system.simulation.collectives == Fidelity::step;
    if (by_rounds_ && !attach_ports_) rotates_ = step_.rotating();
    settle("places in collectives executed round by round");
    if (attach_ports_ || step_.wiring.has_trunks()) attach_all();
    attach_copies();
    settle("");
    if (distinct(colours_) > classes_told()) tell_apart("what shared links carry: " + links_that_differ());
  }

  [[nodiscard]] Fold fold() && {
    Fold out;
    out.told_apart = std::move(told_apart_);
    number_ranks(out);
    std::unordered_map<Colour, Wire> first;
    for (std::size_t i = 0; i < wires_.size(); ++i) out.wires[wires_[i]] = first.try_emplace(wire_colours_[i], wires_[i]).first->second;
    for (auto& [kind, groups] : step_.groups) {
      groups.colour_of = entities_.at(kind).colour;
      for (std::size_t g = 0; g < groups.groups.size(); ++g) groups.classes[groups.colour_of[g]].push_back(static_cast<int>(g));
    }
    out.groups = std::move(step_.groups);
    return out;
  }

 private:
  // Stage, faults, and where experts differ, which ones the rank has.
  void colour_ranks(const StepFaults& faults) {
    for (int rank = 0; rank < step_.grid.size(); ++rank)
      colours_.push_back(chain(0, static_cast<std::uint64_t>(step_.grid.coordinates(rank).pp)));
    tell_apart("pipeline stages");
    for (int rank = 0; rank < step_.grid.size() && !even_; ++rank) {
      Colour& colour = colours_[static_cast<std::size_t>(rank)];
      colour = chain(colour, static_cast<std::uint64_t>(step_.grid.expert_rank(rank)));
    }
    tell_apart("experts that get different numbers of tokens");
    for (int rank = 0; rank < step_.grid.size(); ++rank) {
      Colour& colour = colours_[static_cast<std::size_t>(rank)];
      colour = chain(chain(colour, faults.slow.gpu(rank)), faults.slow.port(rank));
    }
    std::uint64_t number = 0;
    for (const StepFailure& failure : faults.failures) mark(failure.ranks, ++number);
    for (const SlowSpell& spell : faults.spells) mark(spell.ranks, ++number);
    tell_apart("what is slow or fails");
  }

  [[nodiscard]] std::size_t classes_told() const { return told_apart_.empty() ? 1 : static_cast<std::size_t>(told_apart_.back().classes); }

  void tell_apart(const std::string& by) {
    if (const std::size_t classes = distinct(colours_); classes > classes_told()) told_apart_.push_back({by, static_cast<int>(classes)});
  }

  // Kinds of links that are not all alike.
  [[nodiscard]] std::string links_that_differ() const {
    std::map<std::string_view, std::set<Colour>> colours;
    for (std::size_t i = 0; i < wires_.size(); ++i)
      colours[Wiring::name_of(wires_[i])].insert(chain(wire_colours_[i], Wiring::sort_of(wires_[i])));
    std::vector<std::string_view> names;
    for (const auto& [name, some] : colours) {
      if (some.size() > 1) names.push_back(name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void mark(const std::vector<int>& ranks, std::uint64_t number) {
    for (const int rank : ranks) {
      Colour& colour = colours_[static_cast<std::size_t>(rank)];
      colour = chain(colour, number);
    }
  }

  void colour_groups() {
    for (auto& [kind, list] : step_.groups) {
      Colours& initial = entities_.at(kind).initial;
      for (std::size_t g = 0; g < list.groups.size(); ++g) {
        const Communication probe{"", workloads::CollectiveKind::all_gather, kind, probe_bytes, workloads::Pass::forward};
        initial[g] = chain(static_cast<Colour>(kind), signature(step_.model.price(probe, list.groups[g])));
      }
    }
  }

  // A message to the next stage and one to the previous, from each rank.
  void colour_neighbours() {
    for (int rank = 0; rank < step_.grid.size(); ++rank) {
      for (const bool next : {true, false}) {
        const std::array members{rank, neighbour(rank, next)};
        const Communication probe{"", workloads::CollectiveKind::send_recv, GroupKind::pp, probe_bytes, workloads::Pass::forward};
        (next ? to_next_ : to_previous_).initial.push_back(signature(step_.model.price(probe, members)));
      }
    }
  }

  [[nodiscard]] int neighbour(int rank, bool next) const { return next ? step_.grid.next_stage(rank) : step_.grid.previous_stage(rank); }

  // Whose members must be told apart by their places.
  [[nodiscard]] bool by_place(GroupKind kind, std::size_t group) const {
    if (!by_rounds_) return false;
    const std::vector<int>& members = step_.groups.at(kind).groups[group];
    return rotates_.empty() || !rotates_.at(kind)[group] || !std::ranges::all_of(members, [&](int member) {
             return colours_[static_cast<std::size_t>(member)] == colours_[static_cast<std::size_t>(members.front())];
           });
  }

  std::uint32_t index_of(Wire wire) {
    const auto [it, added] = wire_index_.try_emplace(wire, static_cast<std::uint32_t>(wires_.size()));
    if (added) {
      wires_.push_back(wire);
      users_.push_back(step_.wiring.users(wire));
      wire_colours_.push_back(chain(chain(1, step_.wiring.bytes_per_s(wire)), Wiring::sort_of(wire)));
    }
    return it->second;
  }

  void attach(Entities& entities, std::uint32_t entity, const std::vector<Load>& loads, std::uint64_t label) {
    for (std::size_t i = 0; i < loads.size(); ++i) {
      for (const auto& [wire, times] : loads[i].wires) {
        if (!attach_ports_ && step_.wiring.owner(wire) >= 0) continue;
        entities.attachments.push_back({entity, index_of(wire), chain(chain(label, i), static_cast<std::uint64_t>(times))});
      }
    }
  }

  void attach_all() {
    for (const auto& [kind, patterns] : step_.patterns) {
      for (std::size_t p = 0; p < patterns.size(); ++p) {
        const GroupClasses& list = step_.groups.at(kind);
        for (std::size_t g = 0; g < list.groups.size(); ++g) attach_call(kind, g, patterns[p], chain(static_cast<Colour>(kind), p));
      }
    }
    for (int rank = 0; rank < step_.grid.size(); ++rank) {
      for (const bool next : {true, false}) {
        const int to = neighbour(rank, next);
        if (to == rank || (!next && to == step_.grid.next_stage(rank))) continue;
        attach(next ? to_next_ : to_previous_, static_cast<std::uint32_t>(rank), {load_of_message(rank, to, 1, -1, step_.wiring, 0)}, 0);
      }
    }
  }

  // An exchange is made of flows of single members; over trunks, of all, among which those that carry alike differ between exchanges where
  // tokens are routed unevenly.
  void attach_call(GroupKind kind, std::size_t group, const Communication& what, std::uint64_t label) {
    const std::vector<int>& members = step_.groups.at(kind).groups[group];
    const bool by_round = by_rounds_ && !flows_in_every_round(what, step_.model.price(what, members), members, step_.model);
    if (by_round) return attach_messages(kind, group, what, label);
    std::vector<Load> together;
    for (Load& load : step_.loads(what, members)) {
      if (load.member < 0) {
        together.push_back(std::move(load));
      } else {
        const int rank = members[static_cast<std::size_t>(load.member)];
        attach(alone_, static_cast<std::uint32_t>(rank), {std::move(load)}, label);
      }
    }
    if (what.exchange && !even_) together = trunks_of_pairs(members, step_.wiring);
    attach(entities_.at(kind), static_cast<std::uint32_t>(group), together, label);
  }

  void attach_messages(GroupKind kind, std::size_t group, const Communication& what, std::uint64_t label) {
    const std::vector<int>& members = step_.groups.at(kind).groups[group];
    const auto at = [&](int member) { return members[static_cast<std::size_t>(member)]; };
    for (const workloads::Transfer& t : messages_of(what, step_.model.price(what, members), members, step_.model)) {
      const int rail = t.rail_of < 0 ? -1 : step_.wiring.rail_of(at(t.rail_of));
      const Load load = load_of_message(at(t.from), at(t.to), t.bytes, rail, step_.wiring, 0);
      attach(entities_.at(kind), static_cast<std::uint32_t>(group), {load},
             chain(chain(label, static_cast<std::uint64_t>(t.from)), static_cast<std::uint64_t>(t.to)));
    }
  }

  // Copies to and from the host, each kind once.
  void attach_copies() {
    std::set<GroupKind> kinds;
    for (const Communication& what : step_.calls) {
      if (static_cast<int>(what.group) < workloads::network_group_kinds || !kinds.insert(what.group).second) continue;
      for (int rank = 0; rank < step_.grid.size(); ++rank) {
        Load load;
        std::vector<Wire> wires;
        step_.wiring.host_copy(rank, what.group, wires);
        for (const Wire wire : wires) load.wires.emplace_back(wire, 1);
        attach(alone_, static_cast<std::uint32_t>(rank), {load}, static_cast<std::uint64_t>(what.group));
      }
    }
  }

  static void gather_from_wires(Entities& entities, const Colours& wires) {
    entities.from_wires.assign(entities.initial.size(), 0);
    for (const Attachment& a : entities.attachments) entities.from_wires[a.entity] += chain(wires[a.wire], a.label);
  }

  static void give_to_wires(const Entities& entities, Colours& sums) {
    for (const Attachment& a : entities.attachments) sums[a.wire] += chain(entities.colour[a.entity], a.label);
  }

  // Of the set of its members' colours.
  [[nodiscard]] Colour colour_of_members(const std::vector<int>& members) const {
    Colours all;
    all.reserve(members.size());
    for (const int member : members) all.push_back(colours_[static_cast<std::size_t>(member)]);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    Colour colour = 2;
    for (const Colour one : all) colour = chain(colour, one);
    return colour;
  }

  void colour_entities() {
    for (auto& [kind, entities] : entities_) {
      const GroupClasses& list = step_.groups.at(kind);
      entities.colour.resize(list.groups.size());
      for (std::size_t g = 0; g < list.groups.size(); ++g) {
        entities.colour[g] = chain(chain(entities.initial[g], colour_of_members(list.groups[g])), entities.from_wires[g]);
      }
    }
    for (const bool next : {true, false}) {
      Entities& to = next ? to_next_ : to_previous_;
      to.colour.resize(to.initial.size());
      for (std::size_t rank = 0; rank < to.initial.size(); ++rank) {
        const auto neighbour_rank = static_cast<std::size_t>(neighbour(static_cast<int>(rank), next));
        to.colour[rank] = chain(chain(chain(to.initial[rank], colours_[rank]), colours_[neighbour_rank]), to.from_wires[rank]);
      }
    }
    alone_.colour.resize(alone_.initial.size());
    for (std::size_t rank = 0; rank < alone_.initial.size(); ++rank) alone_.colour[rank] = chain(colours_[rank], alone_.from_wires[rank]);
  }

  void colour_wires() {
    Colours sums(wires_.size(), 0);
    for (const auto& [kind, entities] : entities_) give_to_wires(entities, sums);
    for (const Entities* entities : {&to_next_, &to_previous_, &alone_}) give_to_wires(*entities, sums);
    for (std::size_t i = 0; i < wires_.size(); ++i)
      wire_colours_[i] = chain(chain(wire_colours_[i], sums[i]), colour_of_members(users_[i]));
  }

  void settle(const std::string& by) {
    classes_ = {};
    while (refine()) {
    }
    if (!by.empty()) tell_apart(by);
  }

  // One round of colour refinement; false when nothing was split.
  bool refine() {
    for (auto& [kind, entities] : entities_) gather_from_wires(entities, wire_colours_);
    for (Entities* entities : {&to_next_, &to_previous_, &alone_}) gather_from_wires(*entities, wire_colours_);
    colour_entities();
    colour_wires();
    Colours next = colours_;
    for (const auto& [kind, entities] : entities_) {
      const GroupClasses& list = step_.groups.at(kind);
      for (std::size_t rank = 0; rank < next.size(); ++rank) {
        const std::int32_t group = list.group_of[rank];
        next[rank] = chain(next[rank], group < 0 ? 0 : entities.colour[static_cast<std::size_t>(group)]);
      }
      for (std::size_t group = 0; group < list.groups.size(); ++group) {
        if (!by_place(kind, group)) continue;
        std::uint64_t place = 0;
        for (const int member : list.groups[group]) {
          Colour& colour = next[static_cast<std::size_t>(member)];
          colour = chain(colour, ++place);
        }
      }
    }
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      const int own = static_cast<int>(rank);
      const auto after = static_cast<std::size_t>(step_.grid.next_stage(own)),
                 before = static_cast<std::size_t>(step_.grid.previous_stage(own));
      for (const Colour colour :
           {to_next_.colour[rank], to_previous_.colour[rank], to_next_.colour[before], to_previous_.colour[after], alone_.colour[rank]}) {
        next[rank] = chain(next[rank], colour);
      }
    }
    colours_ = std::move(next);
    const std::pair now{distinct(colours_), distinct(wire_colours_)};
    const bool split = now != classes_;
    classes_ = now;
    return split;
  }

  // By first appearance, so that the first rank of a class is its representative.
  void number_ranks(Fold& out) const {
    std::unordered_map<Colour, std::uint32_t> number;
    for (int rank = 0; rank < step_.grid.size(); ++rank) {
      const Colour colour = colours_[static_cast<std::size_t>(rank)];
      const auto [it, added] = number.try_emplace(colour, static_cast<std::uint32_t>(number.size()));
      out.ranks.class_of.push_back(it->second);
      if (added) {
        out.ranks.ranks.push_back({rank, step_.grid.coordinates(rank).pp, 0});
        out.members.emplace_back();
      }
      ++out.ranks.ranks[it->second].multiplicity;
      out.members[it->second].push_back(rank);
    }
  }

  StepCalls step_;
  std::map<GroupKind, Entities> entities_;
  bool even_ = true;                                // whether all experts get as many tokens
  bool by_rounds_ = false;                          // fidelity `step`
  std::map<GroupKind, std::vector<bool>> rotates_;  // [group]; empty: none does
  Entities to_next_, to_previous_, alone_;          // [rank]
  bool attach_ports_ = false;                       // otherwise ports are as alike as their owners
  std::vector<Wire> wires_;                         // those that must be told apart
  std::vector<std::vector<int>> users_;             // [wire] whose computation slows it
  std::unordered_map<Wire, std::uint32_t> wire_index_;
  Colours colours_, wire_colours_;
  std::pair<std::size_t, std::size_t> classes_;  // of ranks, of wires
  std::vector<ToldApart> told_apart_;
};

}  // namespace

Fold fold(const System& system, const workloads::Workload& workload, const workloads::Compiled& compiled, const CommunicationModel& model) {
  return fold(system, workload, model, communications(workload, compiled));
}

Fold fold(const System& system, const workloads::Workload& workload, const CommunicationModel& model, std::vector<Communication> calls) {
  return Refinement(system, workload, model, std::move(calls)).fold();
}

Fold unfolded(const System& system, const workloads::Workload& workload) {
  Fold out{.ranks = workloads::unfolded(workload), .wires = {}, .groups = {}, .members = {}, .told_apart = {}};
  const bool ecmp = system.simulation.routing == Routing::ecmp;
  if (system.gpus > 1) out.told_apart = {{ecmp ? "ECMP, which leads each flow its own way" : "simulation.ranks: all", system.gpus}};
  return out;
}

}  // namespace rehearse::sim
