// A GPU's units, one turn after another, and what its replicas exchange beside them.
#pragma once

#include "sim/analytic/replica_cost.hpp"
#include "sim/analytic/two_streams.hpp"

namespace rehearse::sim {

// ZeRO-3: parameters are gathered two turns ahead where that overlaps, otherwise when the turn comes; gradients are reduced after each
// backward, with no_sync after the last one of a chunk, where that overlaps.
class UnitExchange {
 public:
  using Kind = workloads::Slot::Kind;
  // Seconds of communication that are left: of all that is queued, and up to where the parameters of this turn and of the next are there,
  // and the last gradients reduced.
  struct UnderWay {
    double all_s = 0, here_s = 0, next_s = 0, reduced_s = 0;
    TwoStreams::Message message{};
    bool operator==(const UnderWay&) const = default;
  };

  // The stack's own time comes before 0, with the gathers of the first two turns beside it.
  explicit UnitExchange(const ReplicaRules& rules)
      : rules_(rules),
        gathers_(rules.gathers_each()),
        ahead_(gathers_ && rules.sync.overlap_parameters),
        reduces_last_(gathers_ && !rules.reduces_each() && rules.sync.overlap_gradients),
        streams_(rules.pair, -rules.overhead_s) {}
  void begin(const GatheredTurn& first, const GatheredTurn& second) {
    gather_ahead(first);
    gather_ahead(second);
    begun_ = true;
    streams_.compute(rules_.overhead_s);
    streams_.pass_until(0);
  }

  [[nodiscard]] bool gathers_ahead() const { return ahead_; }
  [[nodiscard]] bool reduces_last() const { return reduces_last_; }
  [[nodiscard]] static bool makes_gradients(Kind kind) { return kind == Kind::backward || kind == Kind::backward_weight; }
  [[nodiscard]] double now() const { return streams_.now(); }
  [[nodiscard]] double exchanged_s() const { return exchanged_s_; }  // for which it waited, or was slowed
  void pass(double seconds) { streams_.pass(seconds); }
  void pass_until(double time) { streams_.pass_until(time); }

  // A turn: before it waits for its input, itself, and what follows. next_but_one: the turn after the next.
  void ask(const UnitTerms& unit, Kind kind) {
    if (gathers_ && !ahead_) here_ = gather(unit.gathers_s(kind));
  }
  // When it begins, with the gather that nothing but the stack's own time runs beside.
  double work(const UnitTerms& unit, Kind kind) {
    const double start = now();
    if (gathers_) streams_.wait(here_);
    const double begin = now() - lead_s(unit.gathers_s(kind));
    const MetPass& pass = unit.pass(kind);
    streams_.work(pass, ahead_ ? next_ : 0);
    exchanged_s_ += now() - start - (pass.parts.compute_s + pass.parts.calls_s);
    return begin;
  }
  // completes: the slot is the last that adds to its chunk's gradients. Asked only where it reduces_last().
  void follow(const UnitTerms& unit, Kind kind, bool completes, const GatheredTurn& next_but_one) {
    reduce(unit, kind, completes);
    if (ahead_) gather_ahead(next_but_one);
  }
  // A message of so many seconds leaves or comes in: by how much it is longer beside what is under way.
  double message(double seconds, const MessageMeets& met) { return streams_.send(seconds, met, here_, next_, reduced_); }
  void end() { wait_for(reduced_); }

  // Counts time, and what it has waited for, from here.
  void restart(const UnderWay& from) {
    streams_.restart(from.all_s, from.message);
    here_ = from.here_s;
    next_ = from.next_s;
    reduced_ = from.reduced_s;
    exchanged_s_ = 0;
  }
  [[nodiscard]] UnderWay under_way() const {
    return {streams_.backlog(), streams_.left(here_), streams_.left(next_), streams_.left(reduced_), streams_.message()};
  }

 private:
  [[nodiscard]] double lead_s(double gathers_s) const {
    if (!gathers_) return 0;
    return ahead_ ? std::max(0.0, gathers_s - rules_.overhead_s) : gathers_s;
  }
  [[nodiscard]] double gather(double seconds) { return seconds > 0 ? streams_.queue(seconds) : 0; }
  // That of the root's unit not before its turn has come: with that of the turn behind it.
  void gather_ahead(const GatheredTurn& turn) {
    here_ = root_.unit != nullptr ? gather(root_.gathers_s()) : next_;
    root_ = {};
    if (!ahead_ || turn.unit == nullptr) return;
    if (turn.unit->leads_root && turn.kind == Kind::forward && begun_) {
      root_ = turn;
    } else {
      next_ = gather(turn.gathers_s());
    }
  }
  void reduce(const UnitTerms& unit, Kind kind, bool completes) {
    if (!makes_gradients(kind)) return;
    if (!rules_.reduces_each() && !(completes && reduces_last_)) return;
    reduced_ = streams_.queue(unit.reduce_s);
    if (!rules_.sync.overlap_gradients) wait_for(reduced_);
  }
  void wait_for(double mark) {
    const double before = now();
    streams_.wait(mark);
    exchanged_s_ += now() - before;
  }

  const ReplicaRules& rules_;
  bool gathers_, ahead_, reduces_last_, begun_ = false;
  GatheredTurn root_{};  // the next turn, where its parameters come with it
  TwoStreams streams_;
  double here_ = 0, next_ = 0, reduced_ = 0, exchanged_s_ = 0;
};

}  // namespace rehearse::sim
