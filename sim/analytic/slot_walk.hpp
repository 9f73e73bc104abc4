// The pipelined part of a step where stages or chunks differ, forwards and backwards overlap, or messages leave early: no closed form is
// exact there, but the order of the slots is known, and walking it costs a maximum and a sum per slot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/analytic/pipeline_formula.hpp"
#include "sim/analytic/slot_order.hpp"

namespace rehearse::sim {

// What walks write into, once and again.
struct WalkRoom {
  std::vector<double> arrived_s, free_s;  // [message], [stream]
};

// When stages are at work, in seconds from the start of the pipeline.
struct StageSpans {
  std::vector<double> start_s, end_s;  // [stage]
  PerChunk completed_s;                // when the last slot that adds to a chunk's gradients ends
};

// Walks one pipeline after another, each with its messages and, where that is asked for, with messages that take no time.
// A slot starts when the one before it on its stage has ended and its message is there; paired slots start as one. Once every stage is a
// round later by the same time (to a part in 10^11 of it), so it stays: rounds that are left then only add that time, since a later
// start of everything is a later end of everything, and no single one's by more. The walk without messages keeps a time of its own: whether
// it is asked for changes no bit of the other.
class SlotWalk {
 public:
  enum class What : std::uint8_t { with_messages, both };
  // Orders must outlive the walk: a pipeline that was among the last ones is not walked again.
  void walk(const SlotOrder& order, const PipelineTimes& times, What what = What::both);
  [[nodiscard]] const StageSpans& spans() const { return known_[newest_].spans[0]; }
  [[nodiscard]] const StageSpans& without_messages() const { return known_[newest_].spans[1]; }

 private:
  struct Walked {
    const SlotOrder* order = nullptr;
    PipelineTimes times;
    What what = What::with_messages;
    std::array<StageSpans, 2> spans;
  };
  void walk(Walked& walked);

  std::array<Walked, 4> known_;  // the last ones
  std::size_t newest_ = 0;
  WalkRoom room_;
};

[[nodiscard]] StageSpans walk_slots(const workloads::Workload& workload, const PipelineTimes& times);
// Slot after slot, whatever repeats.
[[nodiscard]] StageSpans walk_all_slots(const workloads::Workload& workload, const PipelineTimes& times);

}  // namespace rehearse::sim
