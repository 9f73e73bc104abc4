// A GPU's compute stream and the stream of what its replicas exchange, in seconds.
#pragma once

#include <algorithm>
#include <limits>

#include "sim/analytic/port_sharing.hpp"

namespace rehearse::sim {

// Communications follow one another without a gap while any is queued, so that a number tells what has been sent. Computation and
// communication slow each other down while both go on.
class TwoStreams {
 public:
  explicit TwoStreams(const ContentionPair& pair, double now = 0) : pair_(pair), now_(now) {}
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double backlog() const { return queued_ - sent_; }
  // Of what is queued before `mark`.
  [[nodiscard]] double left(double mark) const { return std::max(0.0, mark - sent_); }
  // Until when to wait() for the end of it.
  double queue(double communication_s) {
    if (const double left = message_until_ - now_ - backlog(); left > 0 && message_ != nullptr) {
      const double together = std::min(message_->alpha * left, message_->beta * communication_s);
      message_until_ += together * message_->is_delayed;
      communication_s += together * message_->delays;
    }
    queued_ += communication_s;
    return queued_;
  }
  void wait(double mark) {
    if (mark <= sent_) return;
    now_ += mark - sent_;
    sent_ = mark;
  }
  // A message of so many seconds begins, for which nobody waits here: by how much it is longer beside what is queued. The marks, too, are
  // later, and what is queued while it is under way.
  template <class... Marks>
  double send(double seconds, const MessageMeets& met, Marks&... marks) {
    if (!met.anything || seconds <= 0) return 0;
    const auto together = [&](double communication_s) { return std::min(met.alpha * seconds, met.beta * communication_s); };
    const double beside = together(backlog()), longer = beside * met.is_delayed;
    if (beside > 0) {
      ((marks += together(left(marks)) * met.delays), ...);
      queued_ += beside * met.delays;
    }
    if (now_ + seconds + longer > message_until_) {
      message_until_ = now_ + seconds + longer;
      message_ = &met;
    }
    return longer;
  }
  void compute(double seconds) { beside(seconds, pair_); }
  // A unit's pass, whose calls lie around two halves of what it computes from the first of them to the last. What is joined waits for
  // `next`.
  void work(const MetPass& unit, double next) {
    work_alone(unit);
    if (unit.parts.joined_s <= 0) return;
    wait(next);
    compute(unit.parts.joined_s);
  }
  // Nothing is computed.
  void pass(double seconds) {
    now_ += seconds;
    sent_ = std::min(queued_, sent_ + seconds);
  }
  void pass_until(double time) {
    if (time > now_) pass(time - now_);
  }
  // A message that is under way when all is sent, and how it and what is queued then meet.
  struct Message {
    double left_s = 0;
    const MessageMeets* met = nullptr;
    bool operator==(const Message&) const = default;
  };
  [[nodiscard]] Message message() const { return message_until_ - now_ > backlog() ? Message{message_until_ - now_, message_} : Message{}; }
  // Time, and what is sent, count from here.
  void restart(double backlog, const Message& message) {
    now_ = sent_ = 0;
    queued_ = backlog;
    message_until_ = message.left_s;
    message_ = message.met;
  }
  void skip(double seconds, double more_backlog) {
    now_ += seconds;
    queued_ += more_backlog;
  }

 private:
  void work_alone(const MetPass& unit) {
    const PassParts& pass = unit.parts;
    if (!unit.meets || backlog() <= 0) {
      compute(pass.compute_s - pass.joined_s);
      return this->pass(pass.calls_s);
    }
    const auto call = [&](double part) {
      const double sends = std::min(pass.calls_s, pass.ports.transfer_s);
      this->pass(part * (pass.calls_s - sends));
      beside(part * sends, unit.met);
    };
    const double between = pass.compute_s - pass.before_s - pass.after_s;
    compute(pass.before_s);
    call(0.25);
    compute(0.5 * between);
    call(0.5);
    compute(0.5 * between);
    call(0.25);
    compute(pass.after_s - pass.joined_s);
  }
  void beside(double seconds, const ContentionPair& pair) {
    const double computes = pair.alpha * seconds, communicates = pair.beta * backlog();
    if (communicates <= computes) {
      now_ += communicates + seconds - communicates / pair.alpha;
      sent_ = queued_;
    } else {
      now_ += computes;
      sent_ += computes / pair.beta;
    }
  }

  const ContentionPair& pair_;
  double now_ = 0, queued_ = 0, sent_ = 0;
  double message_until_ = std::numeric_limits<double>::lowest();
  const MessageMeets* message_ = nullptr;
};

}  // namespace rehearse::sim
