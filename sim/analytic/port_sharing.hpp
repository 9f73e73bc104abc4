// Two communications of a GPU that go over its ports at once: what each then leaves to the other.
#pragma once

#include "sim/cost/communication.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/result.hpp"

namespace rehearse::sim {

// The calls of a pass that are waited for: what they put on the ports, and how long the pass computes before the first and behind the last;
// of what it computes, what comes behind the gather of the next turn (Operator::behind_gather), at its end.
struct WaitedCalls {
  PortTimes ports;
  double before_s = 0, after_s = 0, joined_s = 0;
};

// What a unit's pass spends in the open, and what its calls do with the GPU's ports meanwhile.
struct PassParts {
  PassParts() = default;
  PassParts(const PhaseTimes& phases, const WaitedCalls& calls)
      : compute_s(phases[Phase::compute] + phases[Phase::recompute]),
        calls_s(phases.total() - compute_s),
        before_s(calls.before_s),
        after_s(calls.after_s),
        joined_s(calls.joined_s),
        ports(calls.ports) {}
  void add(const PassParts& more) {
    compute_s += more.compute_s;
    calls_s += more.calls_s;
    before_s += more.before_s;
    after_s += more.after_s;
    joined_s += more.joined_s;
    ports.add(more.ports);
  }

  double compute_s = 0, calls_s = 0;
  double before_s = 0, after_s = 0;  // of compute_s, before the first of the calls and behind the last
  double joined_s = 0;               // of compute_s, and of after_s where there are calls
  PortTimes ports;
};

// By how much calls that send (alpha) and what goes on beside them (beta) take longer. A port that both fill is divided fairly among
// messages: who wants less than its part has that, and the other the rest. beside_s: of what is beside, latencies included, in which it
// leaves the ports alone.
[[nodiscard]] ContentionPair where_they_meet(const PortTimes& calls, const PortTimes& beside, double beside_s);

// A message between stages beside what replicas exchange: for how much of the time that they spend together it is delayed, and delays.
struct MessageMeets {
  MessageMeets() = default;
  explicit MessageMeets(const ContentionPair& met)
      : alpha(met.alpha),
        beta(met.beta),
        is_delayed(1 - 1 / met.alpha),
        delays(1 - 1 / met.beta),
        anything(met.alpha > 1 || met.beta > 1) {}

  double alpha = 1, beta = 1;
  double is_delayed = 0, delays = 0;
  bool anything = false;
};

// A pass beside what its replicas exchange, worked out once for all turns that are alike.
struct MetPass {
  MetPass() = default;
  // exchanged: what the replicas' calls, of so many seconds, put on the ports.
  MetPass(const PassParts& pass, const PortTimes& exchanged, double exchanged_s)
      : parts(pass),
        meets(pass.calls_s > 0 && pass.ports.transfer_s > 0 && exchanged.transfer_s > 0),
        met(meets ? where_they_meet(pass.ports, exchanged, exchanged_s) : ContentionPair{}) {}

  PassParts parts;
  bool meets = false;  // its calls and theirs
  ContentionPair met;
};

// The same of a whole pass whose computation and calls alternate, beside something of which `pair` says how it meets the computation.
[[nodiscard]] ContentionPair of_a_pass(const PassParts& pass, const ContentionPair& pair, const PortTimes& beside, double beside_s);

}  // namespace rehearse::sim
