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
// while one is under way to where it can go on (Machine::quiet_until_s). Machine::next_s and the arrivals so far say what is the earliest
// for members that have not come.
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
  using Place = std::uint32_t;  // of an exchange in Areas::joints
  struct Area {
    std::vector<Place> waiting;  // exchanges to which members have come, and which have not begun
    std::size_t under_way = 0;
    double alone_until_s = never_s;  // before that nothing outside concerns it
    bool known = true;               // that time takes all of `waiting` into account
  };
  struct Member {
    workloads::OpId op = 0;
    AreaIndex area = everywhere;
  };
  static constexpr double unknown = -1;
  struct Exchange {
    double can_begin_s = unknown;  // no earlier than that, as seen when areas parted
    bool looked_at = false;
    std::vector<Member> missing;  // that had not come when it was looked at last
    double last_s = 0;            // when the last of the others came
  };
  [[nodiscard]] AreaIndex index_of(workloads::OpId member) const;
  [[nodiscard]] Place place_of(std::uint32_t joint) const;
  [[nodiscard]] double next_s(AreaIndex index) const;  // no earlier does the area come to anything
  template <class Next>
  [[nodiscard]] double earliest_s(Place place, double enough_s, Next next_s);
  [[nodiscard]] double can_begin_s(Place place);
  std::size_t look_ahead();

  const Areas& areas_;
  const workloads::StepGraph& graph_;
  const Machine& machine_;
  const Execution& run_;
  std::vector<Area> of_;             // [area]
  std::vector<Exchange> exchanges_;  // [of areas_.joints]
  bool apart_ = false;
  double quiet_until_s_ = 0;    // no exchange that was under way when areas parted goes on before
  std::vector<double> next_s_;  // [area] no earlier did it come to anything, when areas parted
};

}  // namespace rehearse::sim
