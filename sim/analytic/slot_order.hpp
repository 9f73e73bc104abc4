// All slots of a pipeline, each after those that it waits for. A property of the schedule and the pipeline's shape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "workloads/plan.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {

// Once a pipeline is full its stages repeat the same slots on later micro-batches: that round is held once, and how often it comes. An
// order without one is held in full, as a single round.
class SlotOrder {
 public:
  explicit SlotOrder(const workloads::Workload& workload);
  // Without looking for a round.
  [[nodiscard]] static SlotOrder in_full(const workloads::Workload& workload);

  // Where a slot's message comes from and goes to. Messages are numbered from 1 on; 0: none. A round later the same message is
  // round_microbatches() further on.
  struct End {
    workloads::Slot::Kind kind = workloads::Slot::Kind::forward;
    std::uint16_t chunk = 0, hop_in = 0, hop = 0;  // hops: index of the way from the source, and to the target
    std::uint32_t in = 0, out = 0;
    [[nodiscard]] bool completes() const {  // what adds to the chunk's gradients
      return kind == workloads::Slot::Kind::backward || kind == workloads::Slot::Kind::backward_weight;
    }
  };
  struct Step {
    std::uint16_t stage = 0;
    bool starts = false, paired = false;  // the first of its stage; with `other`, a backward
    End slot, other;
    // Messages of one direction follow one another on a stream.
    [[nodiscard]] std::uint32_t stream(const End& end) const { return 2U * stage + (end.kind == workloads::Slot::Kind::forward ? 0 : 1); }
  };
  [[nodiscard]] std::span<const Step> before() const { return std::span(held_->steps).first(held_->begin); }
  [[nodiscard]] std::span<const Step> round() const { return std::span(held_->steps).subspan(held_->begin, held_->end - held_->begin); }
  [[nodiscard]] std::span<const Step> after() const { return std::span(held_->steps).subspan(held_->end); }
  struct Work {
    workloads::Slot::Kind kind = workloads::Slot::Kind::forward;
    std::uint16_t chunk = 0;
  };
  // A stage's slots among those that are held.
  struct OfStage {
    std::vector<Work> slots;
    std::size_t begin = 0, end = 0;  // of the round
  };
  // What a stage does, one slot after another, rounds again and again.
  class Works {
   public:
    Works(const OfStage& stage, int rounds) : stage_(&stage), more_rounds_(rounds - 1) { around(); }
    [[nodiscard]] const Work* next() const { return at_ < stage_->slots.size() ? &stage_->slots[at_] : nullptr; }  // null after the last
    void pass() {
      ++at_;
      around();
    }
    void skip_rounds(int rounds) { more_rounds_ -= rounds; }  // at the end of one
    [[nodiscard]] std::size_t at() const { return at_; }      // of those that are held
    [[nodiscard]] bool rounds_follow() const { return more_rounds_ > 0; }

   private:
    void around() {
      if (at_ != stage_->end || more_rounds_ <= 0) return;
      at_ = stage_->begin;
      --more_rounds_;
    }
    const OfStage* stage_;
    std::size_t at_ = 0;
    int more_rounds_;
  };
  [[nodiscard]] Works works(std::size_t stage) const { return works(stage, rounds_); }
  [[nodiscard]] Works works(std::size_t stage, int rounds) const { return {held_->stages[stage], rounds}; }
  [[nodiscard]] int rounds() const { return rounds_; }
  [[nodiscard]] int round_microbatches() const { return held_->period; }
  [[nodiscard]] const std::vector<std::uint32_t>& under_way() const { return held_->under_way; }  // messages between rounds
  [[nodiscard]] const std::vector<std::uint32_t>& streams() const { return held_->streams; }      // those that are used

  // The same schedule with so many micro-batches, where only the number of rounds differs. Shares the steps.
  [[nodiscard]] std::optional<SlotOrder> with_microbatches(int microbatches) const;

  // Of the steps that are held, by which messages are numbered.
  [[nodiscard]] const workloads::PipelineShape& shape() const { return held_->shape; }
  [[nodiscard]] std::size_t messages() const { return 2UL * shape().stages * shape().chunks * shape().microbatches + 1; }
  [[nodiscard]] std::size_t steps() const { return held_->steps.size(); }
  [[nodiscard]] bool has_pairs() const { return held_->has_pairs; }
  // So many micro-batches have the same slots in the same order but for repeated rounds, of which there are two or all.
  [[nodiscard]] int typical_microbatches() const { return shape().microbatches + held_->period; }

 private:
  struct Held {
    workloads::PipelineShape shape;
    std::vector<Step> steps;
    std::size_t begin = 0, end = 0;  // of the round
    int period = 0;
    std::vector<std::uint32_t> under_way, streams;
    bool has_pairs = false;
    std::vector<OfStage> stages;
    void note_messages();
    void note_work();
  };
  SlotOrder() = default;
  [[nodiscard]] static std::shared_ptr<const Held> folded(const workloads::Workload& workload, int period, int fewest);

  std::shared_ptr<const Held> held_;
  int rounds_ = 1;
};

}  // namespace rehearse::sim
