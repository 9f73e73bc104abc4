#include "sim/analytic/slot_walk.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace rehearse::sim {
namespace {

using workloads::Slot;
using End = SlotOrder::End;

// One slot after another, or two beside each other.
class Walk {
 public:
  static constexpr std::size_t lanes = 1;
  Walk(const SlotOrder& order, const PipelineTimes& times, const std::vector<double>& hop_s, StageSpans& spans)
      : times_(times),
        hop_s_(hop_s),
        spans_(spans),
        arrived_s_(order.messages(), 0.0),
        free_s_(2 * spans.end_s.size(), 0.0),
        chunks_(times.forward_s[0].size()) {}

  void step(const SlotOrder::Step& step) {
    const std::size_t stage = step.stage;
    const PairTimes pair = step.paired ? pair_of(stage, step.slot, step.other) : PairTimes{.seconds = seconds(stage, step.slot)};
    const double ready = arrived_s_[step.slot.in], also = step.paired ? arrived_s_[step.other.in] : 0;
    const double lead = lead_s(stage, step.slot), start = std::max({spans_.end_s[stage] + lead, ready - pair.first_late_s, also});
    if (step.starts) spans_.start_s[stage] = start - lead;
    double end = start - lead + pair.seconds;
    const double sent = send(stage, step.slot, end - pair.first_early_s);
    end = std::max({end, sent, step.paired ? send(stage, step.other, end - pair.second_early_s) : end});
    spans_.end_s[stage] = end;
    complete(stage, step.slot, end);
    if (step.paired) complete(stage, step.other, end);
  }

  void renumber(std::size_t messages) {
    std::copy(arrived_s_.begin() + 1 + static_cast<std::ptrdiff_t>(messages), arrived_s_.end(), arrived_s_.begin() + 1);
  }
  void look(const SlotOrder& order, std::vector<double>& at) const {
    at = spans_.end_s;
    for (const std::uint32_t stream : order.streams()) at.push_back(free_s_[stream]);
    for (const std::uint32_t message : order.under_way()) at.push_back(arrived_s_[message]);
  }
  void postpone(const std::array<double, 1>& by) {
    for (std::vector<double>* all : {&spans_.end_s, &free_s_, &spans_.completed_s.all()}) {
      for (double& at : *all) at += by[0];
    }
    for (std::size_t i = 1; i < arrived_s_.size(); ++i) arrived_s_[i] += by[0];
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
  StageSpans& spans_;
  std::vector<double> arrived_s_, free_s_;  // [message]; [stream]
  std::size_t chunks_;
};

// For each lane, without a loop.
template <std::size_t lanes, class Work>
void each(const Work& work) {
  [&]<std::size_t... k>(std::index_sequence<k...>) { (work(k), ...); }
  (std::make_index_sequence<lanes>());
}

// The same where slots run one at a time and each sends at its end: with messages, and without them at the same time.
template <std::size_t count>
class WalkAlone {
 public:
  static constexpr std::size_t lanes = count;
  using Times = std::array<double, lanes>;

  WalkAlone(const SlotOrder& order, const PipelineTimes& times, std::array<StageSpans, 2>& spans, WalkRoom<lanes>& room)
      : times_(times),
        spans_(spans),
        chunks_(static_cast<std::size_t>(order.shape().chunks)),
        arrived_s_(room.arrived_s),
        free_s_(room.free_s),
        now_s_(room.now_s),
        seconds_{times.forward_s.all().data(), times.whole_s.all().data(), times.backward_s.all().data(), times.weight_s.all().data()} {
    arrived_s_.resize(order.messages());
    arrived_s_[0] = {};
    free_s_.assign(2UL * order.shape().stages, {});
    now_s_.assign(static_cast<std::size_t>(order.shape().stages), {});
    each<lanes>([&](std::size_t k) { completed_[k] = spans_[k].completed_s.all().data(); });
  }

  void step(const SlotOrder::Step& step) {
    const End& slot = step.slot;
    const std::size_t cell = step.stage * chunks_ + slot.chunk;
    const double own = seconds_[static_cast<std::size_t>(slot.kind)][cell];
    Times now = now_s_[step.stage];
    const Times& ready = arrived_s_[slot.in];
    each<lanes>([&](std::size_t k) { now[k] = std::max(now[k], ready[k]); });
    if (step.starts) each<lanes>([&](std::size_t k) { spans_[k].start_s[step.stage] = now[k]; });
    each<lanes>([&](std::size_t k) { now[k] += own; });
    if (slot.out != 0) {
      Times free = free_s_[step.stream(slot)];
      each<lanes>([&](std::size_t k) { free[k] = std::max(free[k], now[k]); });
      free[0] += times_.hop_s[slot.hop];
      free_s_[step.stream(slot)] = free;
      arrived_s_[slot.out] = free;
      if (times_.blocking) each<lanes>([&](std::size_t k) { now[k] = std::max(now[k], free[k]); });
    }
    now_s_[step.stage] = now;
    if (slot.completes()) each<lanes>([&](std::size_t k) { completed_[k][cell] = now[k]; });
  }

  void renumber(std::size_t messages) {
    std::copy(arrived_s_.begin() + 1 + static_cast<std::ptrdiff_t>(messages), arrived_s_.end(), arrived_s_.begin() + 1);
  }
  void look(const SlotOrder& order, std::vector<double>& at) const {
    at.clear();
    const auto add = [&](const Times& all) { at.insert(at.end(), all.begin(), all.end()); };
    for (const Times& stage : now_s_) add(stage);
    for (const std::uint32_t stream : order.streams()) add(free_s_[stream]);
    for (const std::uint32_t message : order.under_way()) add(arrived_s_[message]);
  }
  void postpone(const Times& by) {
    const auto add = [&](Times& all) {
      for (std::size_t k = 0; k < lanes; ++k) all[k] += by[k];
    };
    std::ranges::for_each(now_s_, add);
    std::ranges::for_each(free_s_, add);
    std::for_each(arrived_s_.begin() + 1, arrived_s_.end(), add);
    for (std::size_t k = 0; k < lanes; ++k) {
      for (double& at : spans_[k].completed_s.all()) at += by[k];
    }
  }
  void end() {
    for (std::size_t s = 0; s < now_s_.size(); ++s) {
      for (std::size_t k = 0; k < lanes; ++k) spans_[k].end_s[s] = now_s_[s][k];
    }
  }

 private:
  const PipelineTimes& times_;
  std::array<StageSpans, 2>& spans_;
  std::size_t chunks_;
  std::vector<Times>&arrived_s_, &free_s_, &now_s_;
  std::array<const double*, 4> seconds_;  // [Slot::Kind]
  std::array<double*, lanes> completed_{};
};

// Whether a walk has come into step: everything is as some rounds ago, but later by the same time.
template <std::size_t lanes>
class Rhythm {
 public:
  struct Beat {
    int rounds = 1;
    std::array<double, lanes> s{};
  };
  // After each round.
  template <class Walker>
  std::optional<Beat> listen(const SlotOrder& order, const Walker& walker) {
    walker.look(order, now_);
    for (std::size_t ago = 1; ago <= past_.size(); ++ago) {
      if (const auto beat = since(past_[(newest_ + past_.size() + 1 - ago) % past_.size()], static_cast<int>(ago))) return beat;
    }
    const std::size_t most = std::min<std::size_t>(longest, static_cast<std::size_t>(order.shape().stages) + 1);
    if (past_.size() < most) {
      past_.push_back(now_);
      newest_ = past_.size() - 1;
    } else {
      newest_ = (newest_ + 1) % past_.size();
      past_[newest_].swap(now_);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::optional<Beat> since(const std::vector<double>& before, int rounds) const {
    constexpr double rounding = 1e-11;
    Beat beat{.rounds = rounds};
    for (std::size_t k = 0; k < lanes; ++k) beat.s[k] = now_[k] - before[k];
    for (std::size_t i = 0; i < now_.size(); ++i) {
      const double expected = beat.s[i % lanes];
      if (std::abs(now_[i] - before[i] - expected) > rounding * expected) return std::nullopt;
    }
    return beat;
  }

  static constexpr std::size_t longest = 64;
  std::vector<std::vector<double>> past_;
  std::size_t newest_ = 0;
  std::vector<double> now_;
};

template <class Walker>
void follow(const SlotOrder& order, Walker& walker) {
  for (const SlotOrder::Step& step : order.before()) walker.step(step);
  Rhythm<Walker::lanes> rhythm;
  bool in_step = false;
  for (int left = order.rounds(); left > 0;) {
    for (const SlotOrder::Step& step : order.round()) walker.step(step);
    if (--left == 0) break;
    walker.renumber(static_cast<std::size_t>(order.round_microbatches()));
    if (in_step) continue;
    const auto beat = rhythm.listen(order, walker);
    if (!beat) continue;
    in_step = true;
    const int beats = (left - 1) / beat->rounds;  // the last round is walked
    std::array<double, Walker::lanes> later = beat->s;
    for (double& by : later) by *= beats;
    walker.postpone(later);
    left -= beats * beat->rounds;
  }
  for (const SlotOrder::Step& step : order.after()) walker.step(step);
}

template <std::size_t lanes>
void follow_alone(const SlotOrder& order, const PipelineTimes& times, std::array<StageSpans, 2>& spans, WalkRoom<lanes>& room) {
  WalkAlone<lanes> walk(order, times, spans, room);
  follow(order, walk);
  walk.end();
}

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
  const bool both = walked.what == What::both;
  if (!order.has_pairs() && times.lead_forward_s.empty() && !times.whole_s.empty())
    return both ? follow_alone(order, times, walked.spans, two_) : follow_alone(order, times, walked.spans, one_);
  Walk walk(order, times, times.hop_s, walked.spans[0]);
  follow(order, walk);
  if (!both) return;
  const std::vector<double> no_hops(stages, 0.0);
  Walk without(order, times, no_hops, walked.spans[1]);
  follow(order, without);
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
