// The numbers that the formula of a step is made of.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "sim/analytic/plan_cost.hpp"
#include "sim/analytic/port_sharing.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {

// Seconds of a unit per micro-batch.
struct UnitTerms {
  using Kind = workloads::Slot::Kind;
  const UnitCost* cost = nullptr;
  double forward_s = 0, backward_s = 0, weight_s = 0;  // of its own work, as UnitCost has it by phases
  double gather_s = 0;                                 // all-gather of its parameters over the replicas
  double gather_again_s = 0;                           // once more in backward, after recomputation
  double reduce_s = 0;                                 // reduction of its gradients
  double copies_s = 0;                                 // the sum over copies of the shard behind it, in a stream of its own
  double copies_delay_s = 0;                           // by which it holds up gathers and reductions on a port that both use
  bool leads_root = false;                             // gathered when its forward comes, and for both passes
  double copy_s = 0;                                   // of its activations to the host, or back
  PortTimes exchange{};                                // of both, while other calls may meet them
  double late_reduce_s = 0;                            // of its experts' where these wait for the end of the step
  double whole_s = 0;                                  // backward in one slot
  std::array<double, 4> exposed_s{};                   // [Kind] of the two in such a slot, in addition to its own work
  std::array<double, 4> slot_s{};                      // [Kind] both
  std::array<MetPass, 4> passes{};                     // [Kind] of such a slot without what replicas exchange

  [[nodiscard]] double last_backward_s() const { return weight_s > 0 ? weight_s : backward_s; }  // completes the gradients
  [[nodiscard]] double seconds(Kind slot) const {
    switch (slot) {
      case Kind::forward:
        return forward_s;
      case Kind::backward:
        return whole_s;
      case Kind::backward_input:
        return backward_s;
      case Kind::backward_weight:
        break;
    }
    return weight_s;
  }
  [[nodiscard]] double gathers_s(Kind slot) const {
    if (slot == Kind::forward) return gather_s;
    return leads_root ? 0 : gather_s + (slot == Kind::backward_weight ? 0 : gather_again_s);
  }
  [[nodiscard]] const MetPass& pass(Kind slot) const { return passes[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] double exposed(Kind slot) const { return exposed_s[static_cast<std::size_t>(slot)]; }
};

// A unit in a slot.
struct GatheredTurn {
  const UnitTerms* unit = nullptr;
  UnitTerms::Kind kind = UnitTerms::Kind::forward;
  bool operator==(const GatheredTurn&) const = default;
  [[nodiscard]] double gathers_s() const { return unit->gathers_s(kind); }
};

using ChunkTerms = std::span<const UnitTerms* const>;  // in forward order

// Seconds of a pipeline stage.
struct StageTerms {
  std::span<const ChunkTerms> chunks;
  double gather_s = 0;  // all of the stage's parameters at once
  double reduce_s = 0;
  ContentionPair first_forward, last_backward;    // all of it, and what replicas exchange beside it
  MessageMeets to_next, to_last;                  // a message to the stage after it or before it, likewise
  double gather_alone_s = 0, reduce_alone_s = 0;  // of both, while other stages leave shared NICs to them
  double tied_s = 0;                              // all-reduce of the tied embedding's gradient
  double update_s = 0;                            // optimizer
  double in_memory_s = 0, in_memory_alone_s = 0;  // that part of it in the host's memory, which stages may share
  double from_host_s = 0;                         // and the way back after it
};

}  // namespace rehearse::sim
