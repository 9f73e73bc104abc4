#include "sim/analytic/slot_walk.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>

namespace rehearse::sim {

using workloads::Location;
using workloads::Slot;

SlotOrder::SlotOrder(const workloads::Workload& workload)
    : schedule_(workloads::ScheduleRegistry::get(workload.schedule)), shape_(workloads::pipeline_shape(workload)) {
  for (int s = 0; s < shape_.stages; ++s) orders_.push_back(workloads::slots_of(workload, s));
  std::vector<std::size_t> next(orders_.size());
  std::vector<Step> heads;  // [stage] its next step
  for (int s = 0; s < shape_.stages; ++s) heads.push_back(step_at(s, 0));
  std::vector<bool> sent(2UL * shape_.stages * shape_.chunks * shape_.microbatches + 1);
  sent[0] = true;
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < shape_.stages; ++s) {
      Step& head = heads[s];
      for (; next[s] < orders_[s].size() && sent[head.slot.in] && sent[head.other.in]; moved = true) {
        steps_.push_back(head);
        sent[head.slot.out] = sent[head.other.out] = true;
        has_pairs_ = has_pairs_ || head.paired;
        next[s] += head.paired ? 2 : 1;
        head = step_at(s, next[s]);
      }
    }
  }
  for (int s = 0; s < shape_.stages; ++s) {
    if (next[s] < orders_[s].size()) throw std::logic_error("the schedule deadlocks");
  }
  orders_.clear();
}

SlotOrder::Step SlotOrder::step_at(int stage, std::size_t at) const {
  const std::vector<Slot>& order = orders_[stage];
  Step step;
  if (at >= order.size()) return step;
  step.stage = static_cast<std::uint16_t>(stage);
  step.starts = at == 0;
  step.paired = order[at].paired;
  step.slot = end_of(stage, order[at]);
  if (step.paired) step.other = end_of(stage, order[at + 1]);
  return step;
}

std::uint32_t SlotOrder::message(int stage, const Slot& slot) const {
  const std::size_t direction = slot.kind == Slot::Kind::forward ? 0 : 1;
  return static_cast<std::uint32_t>(((direction * shape_.stages + stage) * shape_.chunks + slot.chunk) * shape_.microbatches +
                                    slot.microbatch + 1);
}

SlotOrder::End SlotOrder::end_of(int stage, const Slot& slot) const {
  End end{.kind = slot.kind, .chunk = static_cast<std::uint16_t>(slot.chunk)};
  if (workloads::source_of(schedule_, shape_, stage, slot)) end.in = message(stage, slot);
  const std::optional<Location> target = workloads::target_of(schedule_, shape_, stage, slot);
  if (!target) return end;
  const bool around = std::abs(stage - target->stage) > 1;  // from the last stage to the first, or back
  end.hop = static_cast<std::uint16_t>(around ? shape_.stages - 1 : std::min(stage, target->stage));
  end.out = message(target->stage, {slot.kind, slot.microbatch, target->chunk});
  return end;
}

namespace {

class Walk {
 public:
  Walk(const PipelineTimes& times, const std::vector<double>& hop_s, StageSpans& spans, std::vector<double>& arrived_s,
       std::vector<double>& free_s)
      : times_(times), hop_s_(hop_s), spans_(spans), arrived_s_(arrived_s), free_s_(free_s), chunks_(times.forward_s[0].size()) {}

  void step(const SlotOrder::Step& step) {
    const std::size_t stage = step.stage;
    const PairTimes pair = step.paired ? pair_of(stage, step.slot, step.other) : PairTimes{.seconds = seconds(stage, step.slot)};
    const double ready = arrived_s_[step.slot.in], also = step.paired ? arrived_s_[step.other.in] : 0;
    const double lead = lead_s(stage, step.slot), start = std::max({spans_.end_s[stage] + lead, ready - pair.first_late_s, also});
    if (step.starts) spans_.start_s[stage] = start;
    double end = start - lead + pair.seconds;
    const double sent = send(stage, step.slot, end - pair.first_early_s);
    end = std::max({end, sent, step.paired ? send(stage, step.other, end - pair.second_early_s) : end});
    spans_.end_s[stage] = end;
    complete(stage, step.slot, end);
    if (step.paired) complete(stage, step.other, end);
  }

 private:
  void complete(std::size_t stage, const SlotOrder::End& slot, double end) {
    if (slot.completes()) spans_.completed_s[stage][slot.chunk] = end;
  }

  [[nodiscard]] double seconds(std::size_t stage, const SlotOrder::End& slot) const {
    switch (slot.kind) {
      case Slot::Kind::forward:
        return times_.forward_s[stage][slot.chunk];
      case Slot::Kind::backward:
        return times_.whole_s.empty() ? times_.backward_s[stage][slot.chunk] + weight_s(stage, slot) : times_.whole_s[stage][slot.chunk];
      case Slot::Kind::backward_input:
        return times_.backward_s[stage][slot.chunk];
      case Slot::Kind::backward_weight:
        break;
    }
    return weight_s(stage, slot);
  }
  [[nodiscard]] double weight_s(std::size_t stage, const SlotOrder::End& slot) const {
    return times_.weight_s.empty() ? 0 : times_.weight_s[stage][slot.chunk];
  }

  // Of a pair the first slot's lead counts.
  [[nodiscard]] double lead_s(std::size_t stage, const SlotOrder::End& slot) const {
    if (times_.lead_forward_s.empty() || slot.kind == Slot::Kind::backward_weight) return 0;
    return (slot.kind == Slot::Kind::forward ? times_.lead_forward_s : times_.lead_backward_s)[stage][slot.chunk];
  }

  [[nodiscard]] PairTimes pair_of(std::size_t stage, const SlotOrder::End& forward, const SlotOrder::End& backward) const {
    if (times_.pairs.empty()) return {.seconds = seconds(stage, forward) + seconds(stage, backward)};
    return times_.pairs[(stage * chunks_ + forward.chunk) * chunks_ + backward.chunk];
  }

  // Sends the output of a slot that ends at `end`; when the stage can go on.
  double send(std::size_t stage, const SlotOrder::End& slot, double end) {
    if (slot.out == 0) return end;
    const bool forward = slot.kind == Slot::Kind::forward;
    const PerChunk& early = forward ? times_.early_forward_s : times_.early_backward_s;
    double& free = free_s_[2 * stage + (forward ? 0 : 1)];  // messages of one direction follow one another
    free = std::max(free, end - (early.empty() ? 0 : early[stage][slot.chunk])) + hop_s_[slot.hop];
    arrived_s_[slot.out] = free;
    return times_.blocking ? std::max(end, free) : end;
  }

  const PipelineTimes& times_;
  const std::vector<double>& hop_s_;
  StageSpans& spans_;
  std::vector<double>&arrived_s_, &free_s_;
  std::size_t chunks_;
};

}  // namespace

void SlotWalk::walk(const SlotOrder& order, const PipelineTimes& times) {
  const auto stages = static_cast<std::size_t>(order.shape().stages), chunks = static_cast<std::size_t>(order.shape().chunks);
  for (StageSpans& spans : spans_) {
    spans.start_s.assign(stages, 0.0);
    spans.end_s.assign(stages, 0.0);
    spans.completed_s.lay_out(stages, chunks);
  }
  const std::size_t messages = 2 * stages * chunks * static_cast<std::size_t>(order.shape().microbatches) + 1;
  if (!order.has_pairs() && times.lead_forward_s.empty() && times.early_forward_s.empty() && !times.whole_s.empty()) {
    both_arrived_s_.resize(messages);
    return walk_alone(order, times);
  }
  no_hops_.assign(stages, 0.0);
  arrived_s_.resize(messages);
  arrived_s_[0] = 0;
  for (const bool with_messages : {true, false}) {
    free_s_.assign(2 * stages, 0.0);
    Walk walk(times, with_messages ? times.hop_s : no_hops_, spans_[with_messages ? 0 : 1], arrived_s_, free_s_);
    for (const SlotOrder::Step& step : order.steps()) walk.step(step);
  }
}

// The same where slots run one at a time and each sends at its end: both walks at once.
void SlotWalk::walk_alone(const SlotOrder& order, const PipelineTimes& times) {
  const auto stages = static_cast<std::size_t>(order.shape().stages), chunks = static_cast<std::size_t>(order.shape().chunks);
  both_arrived_s_[0] = {0, 0};
  both_free_s_.assign(2 * stages, {0, 0});
  both_s_.assign(stages, {0, 0});
  const std::array<const double*, 4> seconds{times.forward_s.all().data(), times.whole_s.all().data(), times.backward_s.all().data(),
                                             times.weight_s.all().data()};  // [Slot::Kind]
  const std::array<double*, 2> completed{spans_[0].completed_s.all().data(), spans_[1].completed_s.all().data()};
  for (const SlotOrder::Step& step : order.steps()) {
    const SlotOrder::End& slot = step.slot;
    const std::size_t cell = step.stage * chunks + slot.chunk;
    const double own = seconds[static_cast<std::size_t>(slot.kind)][cell];
    Two& now = both_s_[step.stage];
    const Two& ready = both_arrived_s_[slot.in];
    const Two start{std::max(now[0], ready[0]), std::max(now[1], ready[1])};
    if (step.starts) {
      for (const std::size_t k : {0, 1}) spans_[k].start_s[step.stage] = start[k];
    }
    now = {start[0] + own, start[1] + own};
    if (slot.out != 0) {
      Two& free = both_free_s_[2 * step.stage + (slot.kind == Slot::Kind::forward ? 0 : 1)];
      free = {std::max(free[0], now[0]) + times.hop_s[slot.hop], std::max(free[1], now[1])};
      both_arrived_s_[slot.out] = free;
      if (times.blocking) now = {std::max(now[0], free[0]), std::max(now[1], free[1])};
    }
    if (slot.completes()) {
      completed[0][cell] = now[0];
      completed[1][cell] = now[1];
    }
  }
  for (std::size_t s = 0; s < stages; ++s) {
    for (const std::size_t k : {0, 1}) spans_[k].end_s[s] = both_s_[s][k];
  }
}

StageSpans walk_slots(const workloads::Workload& workload, const PipelineTimes& times) {
  SlotWalk walk;
  walk.walk(SlotOrder(workload), times);
  return walk.spans();
}

}  // namespace rehearse::sim
