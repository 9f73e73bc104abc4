#include "sim/engine/plan_carrier.hpp"

namespace rehearse::sim {

void PlanCarrier::begin(const CommPlan& plan, const Communicator& what, AreaIndex area) {
  const std::size_t slot = running_.take(machine_.lane_of(area));
  Running& begun = running_[slot];
  begun.plan = &plan;
  begun.what = what;
  begun.area = area;
  begun.under_way = true;
  begun.repeats_left = plan.repeat;
  start_round(slot);
}

void PlanCarrier::start_round(std::size_t slot) {
  const CommPlan& plan = *running_[slot].plan;
  running_[slot].legs_left = plan.legs.size();
  running_[slot].waits.clear();
  for (const Leg& leg : plan.legs) running_[slot].waits.push_back(leg.waits_for);
  double delay_s = -1;
  for (std::uint32_t leg = 0; leg < plan.legs.size(); ++leg) {
    if (plan.legs[leg].waits_for > 0 || plan.legs[leg].delay_s == delay_s) continue;
    delay_s = plan.legs[leg].delay_s;
    if (delay_s > 0) {
      ++pending().delays;
      machine_.after(delay_s, RunnerToken::of(RunnerEvent::delay_done, slot, leg), running_[slot].area);
    } else {
      delays_done(slot, leg);
    }
  }
}

// Legs that wait for nothing and have the same delay share one, from the first of them to the next with another.
void PlanCarrier::delays_done(std::size_t slot, std::uint32_t first) {
  const CommPlan& plan = *running_[slot].plan;
  delay_done(slot, first);
  if (plan.legs[first].waits_for > 0) return;
  for (std::uint32_t leg = first + 1; leg < plan.legs.size(); ++leg) {
    if (plan.legs[leg].waits_for > 0) continue;
    if (plan.legs[leg].delay_s != plan.legs[first].delay_s) return;
    delay_done(slot, leg);
  }
}

void PlanCarrier::start_leg(std::size_t slot, std::uint32_t leg) {
  const double delay = running_[slot].plan->legs[leg].delay_s;
  if (delay <= 0) return delay_done(slot, leg);
  ++pending().delays;
  machine_.after(delay, RunnerToken::of(RunnerEvent::delay_done, slot, leg), running_[slot].area);
}

void PlanCarrier::delay_done(std::size_t slot, std::uint32_t index) {
  const CommPlan& plan = *running_[slot].plan;
  const Leg& leg = plan.legs[index];
  if (leg.bytes <= 0) return leg_done(slot, index);
  ++pending().activities;
  machine_.transfer(plan.host, plan.host, plan.links_of(leg), leg.bytes, RunnerToken::of(RunnerEvent::flow_done, slot, index), 1,
                    running_[slot].area);
}

void PlanCarrier::leg_done(std::size_t slot, std::uint32_t leg) {
  const CommPlan& plan = *running_[slot].plan;
  const bool last = --running_[slot].legs_left == 0;
  for (const std::uint32_t next : plan.released_by(plan.legs[leg])) {
    if (--running_[slot].waits[next] == 0) start_leg(slot, next);
  }
  if (!last) return;
  if (--running_[slot].repeats_left > 0) return start_round(slot);
  running_[slot].under_way = false;
  running_.give(slot);
  ended_(Communicator(running_[slot].what));  // its place may be another's before that returns
}

}  // namespace rehearse::sim
