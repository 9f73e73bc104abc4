// Areas of a step: simulated ranks that nothing connects to others but exchanges between replicas. Between two of those each goes through
// time on its own, which gives the same and is quicker: what is looked at again and again is that of a few ranks.
#pragma once

#include <vector>

#include "sim/engine/comm_plan.hpp"
#include "sim/engine/execution.hpp"

namespace rehearse::sim {

struct Areas {
  std::vector<AreaIndex> of_rank;     // [simulated rank], from 1; empty where all are one
  std::vector<bool> between;          // [call] an exchange between replicas in different areas
  std::vector<std::uint32_t> joints;  // of such exchanges, in order
};
// Ranks are connected by their messages and collectives, by links that more than exchanges between replicas load, and by ports they share.
[[nodiscard]] Areas areas_of(const workloads::StepGraph& graph, const CommPlans& plans, const std::vector<PortLink>& ports);

// How far each area may be ahead of others: to where an exchange that it takes part in can begin, for which all members must have come, and
// not while one is under way. Machine::next_s and the arrivals so far say what is the earliest for members that have not come.
class Exchanges {
 public:
  // All must outlive it. `run`: the times as they become known.
  Exchanges(const Areas& areas, const workloads::StepGraph& graph, const Machine& machine, const Execution& run);

  void comes(workloads::OpId member, std::uint32_t joint);
  void begins(std::uint32_t joint);
  void ends(std::uint32_t joint);

  // As Ahead has them.
  [[nodiscard]] bool goes_on(AreaIndex area, double until_s);
  [[nodiscard]] std::size_t part();
  void meet() { apart_ = false; }

 private:
  struct Area {
    std::vector<std::uint32_t> waiting;  // joints to which members have come, and which have not begun
    std::size_t under_way = 0;
    double alone_until_s = never_s;  // before that nothing outside concerns it
    bool known = true;               // that time takes all of `waiting` into account
  };
  [[nodiscard]] Area& area_of(workloads::OpId member);
  [[nodiscard]] double earliest_s(std::uint32_t joint, double enough_s) const;
  [[nodiscard]] std::size_t place_of(std::uint32_t joint) const;  // in areas_.joints
  std::size_t look_ahead();

  const Areas& areas_;
  const workloads::StepGraph& graph_;
  const Machine& machine_;
  const Execution& run_;
  std::vector<Area> of_;  // [area]
  bool apart_ = false;
  std::vector<double> next_s_;       // [area] no earlier does it come to anything, when areas parted
  std::vector<double> can_begin_s_;  // [of areas_.joints] no earlier than that, as seen then
  std::vector<bool> begun_;          // [of areas_.joints]
};

}  // namespace rehearse::sim
