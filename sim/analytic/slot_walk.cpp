#include "sim/analytic/slot_walk.hpp"

#include <algorithm>

#include "sim/analytic/rhythm.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using End = SlotOrder::End;

// When stages end and streams are free, and when messages arrive.
class Clocks {
 public:
  std::vector<double>& arrived_s() { return arrived_s_; }
  void look(const SlotOrder& order, std::vector<double>& at) const {
    at = spans_.end_s;
    for (const std::uint32_t stream : order.streams()) at.push_back(free_s_[stream]);
    for (const std::uint32_t message : order.under_way()) at.push_back(arrived_s_[message]);
  }
  void skip(const Rhythm::Beat& beat, int beats) {
    const double by = beat.s * beats;
    for (std::vector<double>* all : {&spans_.end_s, &free_s_, &spans_.completed_s.all()}) {
      for (double& at : *all) at += by;
    }
    std::for_each(arrived_s_.begin() + 1, arrived_s_.end(), [by](double& at) { at += by; });
  }

 protected:
  // Every message is sent before it is waited for; number 0 is none.
  Clocks(const SlotOrder& order, StageSpans& spans, WalkRoom& room) : spans_(spans), arrived_s_(room.arrived_s), free_s_(room.free_s) {
    arrived_s_.resize(order.messages());
    arrived_s_[0] = 0;
    free_s_.assign(2 * spans.end_s.size(), 0.0);
  }

  StageSpans& spans_;
  std::vector<double>&arrived_s_, &free_s_;  // [message]; [stream]
};

// One slot after another, or two beside each other.
class Walk : public Clocks {
 public:
  Walk(const SlotOrder& order, const PipelineTimes& times, const std::vector<double>& hop_s, StageSpans& spans, WalkRoom& room)
      : Clocks(order, spans, room), times_(times), hop_s_(hop_s), chunks_(times.forward_s[0].size()) {}

  void step(const SlotOrder::Step& step) {
    const std::size_t stage = step.stage;
    const PairTimes pair = step.paired ? pair_of(stage, step.slot, step.other) : PairTimes{.seconds = seconds(stage, step.slot)};
    const double ready = arrived_s_[step.slot.in], also = step.paired ? arrived_s_[step.other.in] : 0;
    const double lead = lead_s(stage, step.slot), start = std::max({spans_.end_s[stage] + lead, ready - pair.first_late_s, also});
    if (step.starts) spans_.start_s[stage] = start - lead;
    double end = start - lead + pair.seconds;
    const double sent = send(stage, step.slot, end - pair.first_early_s);
    const double also_from = apart() ? std::max(end, sent) : end - pair.second_early_s;
    end = std::max({end, sent, step.paired ? send(stage, step.other, also_from) : end});
    spans_.end_s[stage] = end;
    complete(stage, step.slot, end);
    if (step.paired) complete(stage, step.other, end);
  }

 private:
  void complete(std::size_t stage, const End& slot, double end) {
    if (slot.completes()) spans_.completed_s[stage][slot.chunk] = end;
  }

  [[nodiscard]] double seconds(std::size_t stage, const End& slot) const {
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
  [[nodiscard]] double weight_s(std::size_t stage, const End& slot) const {
    return times_.weight_s.empty() ? 0 : times_.weight_s[stage][slot.chunk];
  }

  // Of a pair the first slot's lead counts.
  [[nodiscard]] double lead_s(std::size_t stage, const End& slot) const {
    if (times_.lead_forward_s.empty() || slot.kind == Slot::Kind::backward_weight) return 0;
    return (slot.kind == Slot::Kind::forward ? times_.lead_forward_s : times_.lead_backward_s)[stage][slot.chunk];
  }

  [[nodiscard]] PairTimes pair_of(std::size_t stage, const End& forward, const End& backward) const {
    if (times_.pairs.empty()) return {.seconds = seconds(stage, forward) + seconds(stage, backward)};
    return times_.pairs[(stage * chunks_ + forward.chunk) * chunks_ + backward.chunk];
  }

  // Paired slots that follow one another also send one after the other, where sending is waited for.
  [[nodiscard]] bool apart() const { return times_.pairs.empty() && times_.blocking; }

  // Sends the output of a slot that ends at `end`; when the stage can go on.
  double send(std::size_t stage, const End& slot, double end) {
    if (slot.out == 0) return end;
    double& free = free_s_[2 * stage + (slot.kind == Slot::Kind::forward ? 0 : 1)];
    free = std::max(free, end) + hop_s_[slot.hop];
    arrived_s_[slot.out] = free;
    return times_.blocking ? std::max(end, free) : end;
  }

  const PipelineTimes& times_;
  const std::vector<double>& hop_s_;
  std::size_t chunks_;
};

// The same where slots run one at a time and each sends at its end.
class WalkAlone : public Clocks {
 public:
  WalkAlone(const SlotOrder& order, const PipelineTimes& times, const std::vector<double>& hop_s, StageSpans& spans, WalkRoom& room)
      : Clocks(order, spans, room),
        hop_s_(hop_s),
        blocking_(times.blocking),
        chunks_(static_cast<std::size_t>(order.shape().chunks)),
        completed_(spans.completed_s.all().data()),
        seconds_{times.forward_s.all().data(), times.whole_s.all().data(), times.backward_s.all().data(), times.weight_s.all().data()} {}

  void step(const SlotOrder::Step& step) {
    const End& slot = step.slot;
    const std::size_t cell = step.stage * chunks_ + slot.chunk;
    double now = std::max(spans_.end_s[step.stage], arrived_s_[slot.in]);
    if (step.starts) spans_.start_s[step.stage] = now;
    now += seconds_[static_cast<std::size_t>(slot.kind)][cell];
    if (slot.out != 0) {
      double& free = free_s_[step.stream(slot)];
      free = std::max(free, now) + hop_s_[slot.hop];
      arrived_s_[slot.out] = free;
      if (blocking_) now = std::max(now, free);
    }
    spans_.end_s[step.stage] = now;
    if (slot.completes()) completed_[cell] = now;
  }

 private:
  const std::vector<double>& hop_s_;
  bool blocking_;
  std::size_t chunks_;
  double* completed_;
  std::array<const double*, 4> seconds_;  // [Slot::Kind]
};

}  // namespace

void SlotWalk::walk(const SlotOrder& order, const PipelineTimes& times, What what) {
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const Walked& walked = known_[i];
    if (walked.order != &order || (what == What::both && walked.what != what) || walked.times != times) continue;
    newest_ = i;
    return;
  }
  newest_ = (newest_ + 1) % known_.size();
  Walked& walked = known_[newest_];
  walked.order = &order;
  walked.times = times;
  walked.what = what;
  walk(walked);
}

void SlotWalk::walk(Walked& walked) {
  const SlotOrder& order = *walked.order;
  const PipelineTimes& times = walked.times;
  const auto stages = static_cast<std::size_t>(order.shape().stages), chunks = static_cast<std::size_t>(order.shape().chunks);
  for (StageSpans& spans : walked.spans) {
    spans.start_s.assign(stages, 0.0);
    spans.end_s.assign(stages, 0.0);
    spans.completed_s.lay_out(stages, chunks);
  }
  const bool alone = !order.has_pairs() && times.lead_forward_s.empty() && !times.whole_s.empty();
  const auto follow_with = [&](const std::vector<double>& hop_s, StageSpans& spans) {
    if (alone) {
      WalkAlone walk(order, times, hop_s, spans, room_);
      follow(order, walk);
    } else {
      Walk walk(order, times, hop_s, spans, room_);
      follow(order, walk);
    }
  };
  follow_with(times.hop_s, walked.spans[0]);
  if (walked.what == What::both) follow_with(std::vector<double>(stages, 0.0), walked.spans[1]);
}

StageSpans walk_slots(const workloads::Workload& workload, const PipelineTimes& times) {
  SlotWalk walk;
  walk.walk(SlotOrder(workload), times, SlotWalk::What::with_messages);
  return walk.spans();
}

StageSpans walk_all_slots(const workloads::Workload& workload, const PipelineTimes& times) {
  SlotWalk walk;
  walk.walk(SlotOrder::in_full(workload), times, SlotWalk::What::with_messages);
  return walk.spans();
}

}  // namespace rehearse::sim
