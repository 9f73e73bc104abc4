// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1): micro-batches enter at both ends, stages i and p-1-i hold the same layers, and
// in the steady phase the forward of one direction runs together with the backward of the other. Bubble (p/2 - 1)(FB + B - 3W), with B the
// whole backward and FB the time of a pair; p + 1 chunks' activations on every stage.
#include <algorithm>
#include <deque>
#include <string>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

// The first half of the micro-batches goes down through chunk 0 of each stage, the second half up through chunk 1. For a stage of the lower
// half of the pipeline the directions change their parts: `near` is the one whose micro-batches enter closer to the stage.
class Deal {
 public:
  Deal(const PipelineShape& shape, bool lower_half) : half_(shape.microbatches / 2), lower_(lower_half) {}
  static constexpr int near = 0, far = 1;

  void forward(int part) { slots.push_back(next(Slot::Kind::forward, part, forwards_)); }
  void backward(int part, bool weight_later = false) {
    const Slot slot = next(weight_later ? Slot::Kind::backward_input : Slot::Kind::backward, part, backwards_);
    slots.push_back(slot);
    if (weight_later) waiting_.push_back({Slot::Kind::backward_weight, slot.microbatch, slot.chunk});
  }
  void pair(int forward_part, int backward_part) {
    forward(forward_part);
    slots.back().paired = true;
    backward(backward_part);
  }
  void weight() {
    slots.push_back(waiting_.front());
    waiting_.pop_front();
  }
  std::vector<Slot> slots;

 private:
  Slot next(Slot::Kind kind, int part, int (&counts)[2]) {
    const int chunk = lower_ ? 1 - part : part;
    return {kind, chunk * half_ + counts[chunk]++, chunk};
  }
  int half_;
  bool lower_;
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::deque<Slot> waiting_;
};

class DualPipe final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    if (shape.chunks != 2) return "dualpipe gives each GPU the layers of two stages by itself; vpp must be 1";
    if (shape.stages % 2 != 0) return "dualpipe needs an even pp";
    if (shape.microbatches % 2 != 0 || shape.microbatches < 2 * shape.stages) {
      return "dualpipe needs an even number of micro-batches per replica, at least 2*pp = " + std::to_string(2 * shape.stages) +
             ", and there are " + std::to_string(shape.microbatches);
    }
    return "";
  }

  [[nodiscard]] bool mirrors() const override { return true; }
  [[nodiscard]] int depth(const PipelineShape& shape) const override { return shape.stages; }
  [[nodiscard]] Location location(const PipelineShape& shape, int microbatch, int position) const override {
    return microbatch < shape.microbatches / 2 ? Location{position, 0} : Location{shape.stages - 1 - position, 1};
  }
  [[nodiscard]] int position(const PipelineShape& shape, int microbatch, const Location& at) const override {
    if ((microbatch < shape.microbatches / 2) != (at.chunk == 0)) return -1;
    return at.chunk == 0 ? at.stage : shape.stages - 1 - at.stage;
  }

  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    constexpr int near = Deal::near, far = Deal::far;
    const int half = shape.stages / 2;
    const int from_end = end_distance(shape, stage);
    const int from_middle = half - 1 - from_end;
    Deal deal(shape, stage >= half);
    for (int i = 0; i < 2 * from_middle; ++i) deal.forward(near);
    for (int i = 0; i <= from_end; ++i) {
      deal.forward(near);
      deal.forward(far);
    }
    for (int i = 0; i < from_middle; ++i) {
      deal.backward(far, true);
      deal.weight();
      deal.forward(far);
    }
    steady(deal, shape.microbatches / 2 - shape.stages + from_end + 1, from_middle == 0);
    for (int i = 0; i < from_middle; ++i) {
      deal.backward(far);
      deal.pair(far, near);
    }
    // Weight gradients of the second half of these wait.
    for (int i = 0; i <= 2 * from_end + 1; ++i) deal.backward(i % 2 == 0 ? far : near, i > from_end);
    for (int i = 0; i < from_middle; ++i) {
      deal.weight();
      deal.backward(near, true);
    }
    for (int i = 0; i <= from_end; ++i) deal.weight();
    return deal.slots;
  }

  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int /*stage*/) const override { return shape.stages + 1; }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int stage) const override {
    return shape.stages + (end_distance(shape, stage) + 1 == shape.stages / 2 ? 1 : 0);
  }
  [[nodiscard]] bool splits_backward() const override { return true; }
  [[nodiscard]] bool runs_pairs() const override { return true; }

 private:
  static int end_distance(const PipelineShape& shape, int stage) { return std::min(stage, shape.stages - 1 - stage); }

  // The middle stages run their first pair one after the other: its backward's input depends on the forward before.
  static void steady(Deal& deal, int rounds, bool middle) {
    for (int i = 0; i < rounds; ++i) {
      if (i == 0 && middle) {
        deal.forward(Deal::near);
        deal.backward(Deal::far);
      } else {
        deal.pair(Deal::near, Deal::far);
      }
      deal.pair(Deal::far, Deal::near);
    }
  }
};

const ScheduleRegistry::Registration<DualPipe> dual_pipe_registration("dualpipe");

}  // namespace
}  // namespace rehearse::workloads
