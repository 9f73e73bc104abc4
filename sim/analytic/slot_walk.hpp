// The pipelined part of a step where stages or chunks differ, forwards and backwards overlap, or messages leave early: no closed form is
// exact there, but the order of the slots is known, and walking it costs a maximum and a sum per slot.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/analytic/pipeline_formula.hpp"
#include "workloads/plan.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {

// All slots of a pipeline, each after those that it waits for. A property of the schedule and the pipeline's shape.
class SlotOrder {
 public:
  explicit SlotOrder(const workloads::Workload& workload);

  // Where a slot's message comes from and goes to. Messages are numbered from 1 on; 0: none.
  struct End {
    workloads::Slot::Kind kind = workloads::Slot::Kind::forward;
    std::uint16_t chunk = 0, hop = 0;  // hop: index of the way to the target
    std::uint32_t in = 0, out = 0;
    [[nodiscard]] bool completes() const {  // what adds to the chunk's gradients
      return kind == workloads::Slot::Kind::backward || kind == workloads::Slot::Kind::backward_weight;
    }
  };
  struct Step {
    std::uint16_t stage = 0;
    bool starts = false, paired = false;  // the first of its stage; with `other`, a backward
    End slot, other;
  };
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] const workloads::PipelineShape& shape() const { return shape_; }
  [[nodiscard]] bool has_pairs() const { return has_pairs_; }

 private:
  [[nodiscard]] Step step_at(int stage, std::size_t at) const;
  [[nodiscard]] End end_of(int stage, const workloads::Slot& slot) const;
  [[nodiscard]] std::uint32_t message(int stage, const workloads::Slot& slot) const;

  const workloads::Schedule& schedule_;
  workloads::PipelineShape shape_;
  std::vector<std::vector<workloads::Slot>> orders_;
  std::vector<Step> steps_;
  bool has_pairs_ = false;
};

// When stages are at work, in seconds from the start of the pipeline.
struct StageSpans {
  std::vector<double> start_s, end_s;  // [stage]
  PerChunk completed_s;                // when the last slot that adds to a chunk's gradients ends
};

// Walks one pipeline after another, each with its messages and with messages that take no time.
// A slot starts when the one before it on its stage has ended and its message is there; paired slots start as one.
class SlotWalk {
 public:
  void walk(const SlotOrder& order, const PipelineTimes& times);
  [[nodiscard]] const StageSpans& spans() const { return spans_[0]; }
  [[nodiscard]] const StageSpans& without_messages() const { return spans_[1]; }

 private:
  using Two = std::array<double, 2>;  // with messages, and without
  void walk_alone(const SlotOrder& order, const PipelineTimes& times);

  std::array<StageSpans, 2> spans_;
  std::vector<double> no_hops_;
  std::vector<double> arrived_s_, free_s_;                  // of one walk: [message]; [2 * stage + direction] of streams
  std::vector<Two> both_arrived_s_, both_free_s_, both_s_;  // of both: the same, and [stage] how far
};

[[nodiscard]] StageSpans walk_slots(const workloads::Workload& workload, const PipelineTimes& times);

}  // namespace rehearse::sim
