// Communications under way on a Machine: each is its plan's legs, round after round, a leg a delay and then a flow.
#pragma once

#include <functional>
#include <vector>

#include "sim/engine/comm_plan.hpp"
#include "sim/engine/numbered_by_lane.hpp"
#include "sim/engine/runner_token.hpp"

namespace rehearse::sim {

// What of a launch communicates: a message or a copy, or the first member of a collective.
struct Communicator {
  LaunchIndex launch = 0;
  workloads::OpId op = 0;
};

class PlanCarrier {
 public:
  // `ended` is called when a communication is over, at once. All must outlive it.
  PlanCarrier(Machine& machine, std::vector<Pending>& pending, std::function<void(const Communicator&)> ended)
      : machine_(machine), pending_(pending), ended_(std::move(ended)), running_(machine.lanes()) {}

  void begin(const CommPlan& plan, const Communicator& what, AreaIndex area = everywhere);
  // The machine's tokens RunnerEvent::delay_done and flow_done, of what does not stand still.
  void delays_done(std::size_t slot, std::uint32_t first);
  void flow_done(std::size_t slot, std::uint32_t leg) { leg_done(slot, leg); }

  // Those that `chosen` picks stand still for good.
  template <class Chosen>
  void stop(Chosen chosen) {
    running_.each([&](Running& running) {
      if (running.under_way && !running.hung && chosen(running.what)) running.hung = true;
    });
  }
  [[nodiscard]] bool hung(std::size_t slot) const { return running_[slot].hung; }

 private:
  struct Running {
    const CommPlan* plan = nullptr;
    Communicator what;
    AreaIndex area = everywhere;
    std::size_t legs_left = 0;
    int repeats_left = 0;
    bool under_way = false, hung = false;
    std::vector<std::uint32_t> waits;  // [leg] for so many others
  };

  static constexpr int place_bits = 22;  // of a slot, for which RunnerToken has 28

  [[nodiscard]] Pending& pending() { return pending_[Machine::lane()]; }
  void start_round(std::size_t slot);
  void start_leg(std::size_t slot, std::uint32_t leg);
  void delay_done(std::size_t slot, std::uint32_t leg);
  void leg_done(std::size_t slot, std::uint32_t leg);

  Machine& machine_;
  std::vector<Pending>& pending_;  // [lane]
  std::function<void(const Communicator&)> ended_;
  NumberedByLane<Running, std::size_t, place_bits> running_;
};

}  // namespace rehearse::sim
