// What walks of pipelines have in common: once everything is a round later by the same time, so it stays.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "sim/analytic/slot_order.hpp"

namespace rehearse::sim {

// Whether a walk has come into step: everything is as some rounds ago, but later by the same time (to a part in 10^11 of it).
class Rhythm {
 public:
  struct Beat {
    int rounds = 1;
    double s = 0;
  };
  // After each round.
  template <class Walker>
  std::optional<Beat> listen(const SlotOrder& order, Walker& walker) {
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
    const double later = now_[0] - before[0];
    for (std::size_t i = 0; i < now_.size(); ++i) {
      if (std::abs(now_[i] - before[i] - later) > rounding * later) return std::nullopt;
    }
    return Beat{rounds, later};
  }

  static constexpr std::size_t longest = 64;
  std::vector<std::vector<double>> past_;
  std::size_t newest_ = 0;
  std::vector<double> now_;
};

// Walks an order until it is in step, and skips the rounds that repeat. A walker takes a step, has the arrivals of its messages,
// looks at all instants that the next rounds depend on, and skips so many beats.
template <class Walker>
void follow(const SlotOrder& order, Walker& walker) {
  for (const SlotOrder::Step& step : order.before()) walker.step(step);
  Rhythm rhythm;
  bool in_step = false;
  for (int left = order.rounds(); left > 0;) {
    for (const SlotOrder::Step& step : order.round()) walker.step(step);
    if (--left == 0) break;
    std::vector<double>& arrived_s = walker.arrived_s();  // a round's messages are numbered as those before it
    for (const std::uint32_t message : order.under_way()) arrived_s[message] = arrived_s[message + order.round_microbatches()];
    if (in_step) continue;
    const auto beat = rhythm.listen(order, walker);
    if (!beat) continue;
    in_step = true;
    const int beats = (left - 1) / beat->rounds;  // the last round is walked
    walker.skip(*beat, beats);
    left -= beats * beat->rounds;
  }
  for (const SlotOrder::Step& step : order.after()) walker.step(step);
}

}  // namespace rehearse::sim
