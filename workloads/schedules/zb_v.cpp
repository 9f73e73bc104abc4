// ZB-V (Qi et al., ICLR 2024, section 6): two chunks per stage along a V, so that a micro-batch ends where it began and no stage waits for
// the pipeline to drain; no bubble where F = B = W, with the memory of 1F1B (2p chunks of half the size) on every stage.
#include <string>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

constexpr int down = 0, up = 1;  // the two chunks of a stage

// Hands out the micro-batches of each chunk and kind in order. Those beyond the last are left out.
class Dealer {
 public:
  explicit Dealer(int microbatches) : microbatches_(microbatches) {}
  void forward(int chunk) { next(Slot::Kind::forward, chunk, forwards[chunk]); }
  void backward_input(int chunk) { next(Slot::Kind::backward_input, chunk, inputs[chunk]); }
  void backward_weight(int chunk) { next(Slot::Kind::backward_weight, chunk, weights[chunk]); }
  void backward(int chunk) {
    backward_input(chunk);
    backward_weight(chunk);
  }
  int forwards[2] = {0, 0}, inputs[2] = {0, 0}, weights[2] = {0, 0};
  std::vector<Slot> slots;

 private:
  void next(Slot::Kind kind, int chunk, int& count) {
    if (count < microbatches_) slots.push_back({kind, count, chunk});
    ++count;
  }
  int microbatches_;
};

class ZbV final : public Schedule {
 public:
  [[nodiscard]] std::string refusal(const PipelineShape& shape) const override {
    if (shape.stages < 2) return "zb-v needs pp >= 2";
    if (shape.chunks != 2) return "zb-v has two model chunks per GPU; vpp must be 2";
    if (shape.microbatches < 2 * shape.stages - 1) {
      return "zb-v needs at least 2*pp - 1 = " + std::to_string(2 * shape.stages - 1) + " micro-batches per replica, and there are " +
             std::to_string(shape.microbatches);
    }
    return "";
  }

  [[nodiscard]] Location location(const PipelineShape& shape, int /*microbatch*/, int position) const override {
    return position < shape.stages ? Location{position, down} : Location{2 * shape.stages - 1 - position, up};
  }
  [[nodiscard]] int position(const PipelineShape& shape, int /*microbatch*/, const Location& at) const override {
    return at.chunk == down ? at.stage : 2 * shape.stages - 1 - at.stage;
  }

  [[nodiscard]] std::vector<Slot> order(const PipelineShape& shape, int stage) const override {
    const int above = stage, below = shape.stages - stage;  // stages that a micro-batch has passed, and that it has yet to pass
    Dealer deal(shape.microbatches);
    for (int i = 0; i < 2 * below - 1; ++i) deal.forward(down);  // until the first micro-batch comes back
    for (int i = 0; i < above; ++i) {
      deal.forward(up);
      deal.forward(down);
    }
    for (int i = 0; i < below; ++i) {
      deal.forward(up);
      deal.backward(up);
    }
    while (deal.forwards[up] < deal.forwards[down] || deal.forwards[down] < shape.microbatches) {
      if (deal.forwards[down] < shape.microbatches) deal.forward(down);
      deal.backward(down);
      deal.forward(up);
      deal.backward(up);
    }
    for (int i = 0; i < above; ++i) {
      deal.backward_input(down);
      deal.backward_input(up);
    }
    for (int i = 0; i < below; ++i) deal.backward(down);
    while (deal.weights[up] < shape.microbatches) deal.backward_weight(up);
    while (deal.weights[down] < shape.microbatches) deal.backward_weight(down);
    return deal.slots;
  }

  [[nodiscard]] int peak_in_flight(const PipelineShape& shape, int /*stage*/) const override { return 2 * shape.stages; }
  [[nodiscard]] int warmup_forwards(const PipelineShape& shape, int /*stage*/) const override { return 2 * shape.stages; }
  [[nodiscard]] bool splits_backward() const override { return true; }
  [[nodiscard]] bool staggers_steps() const override { return true; }
};

const ScheduleRegistry::Registration<ZbV> zb_v_registration("zb-v");

}  // namespace
}  // namespace rehearse::workloads
