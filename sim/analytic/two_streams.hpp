// A GPU's compute stream and the stream of what its replicas exchange, in seconds.
#pragma once

#include <algorithm>

#include "sim/cost/gpu.hpp"

namespace rehearse::sim {

// Communications follow one another without a gap while any is queued, so that a number tells what has been sent. Computation and
// communication slow each other down while both go on.
class TwoStreams {
 public:
  explicit TwoStreams(const ContentionPair& pair, double now = 0) : pair_(pair), now_(now) {}
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double backlog() const { return queued_ - sent_; }
  // Until when to wait() for the end of it.
  double queue(double communication_s) {
    queued_ += communication_s;
    return queued_;
  }
  void wait(double mark) {
    if (mark <= sent_) return;
    now_ += mark - sent_;
    sent_ = mark;
  }
  void compute(double seconds) {
    const double computes = pair_.alpha * seconds, communicates = pair_.beta * backlog();
    if (communicates <= computes) {
      now_ += communicates + seconds - communicates / pair_.alpha;
      sent_ = queued_;
    } else {
      now_ += computes;
      sent_ += computes / pair_.beta;
    }
  }
  // Nothing is computed, or what the compute stream waits for is a call of another group.
  void pass(double seconds) {
    now_ += seconds;
    sent_ = std::min(queued_, sent_ + seconds);
  }
  void pass_until(double time) {
    if (time > now_) pass(time - now_);
  }
  void skip(double seconds, double more_backlog) {
    now_ += seconds;
    queued_ += more_backlog;
  }

 private:
  const ContentionPair& pair_;
  double now_ = 0, queued_ = 0, sent_ = 0;
};

}  // namespace rehearse::sim
