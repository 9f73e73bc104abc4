#include "sim/memory/adapted_tensors.hpp"

#include <algorithm>
#include <utility>

#include "sim/memory/torch_operators.hpp"
#include "workloads/operators/adapters.hpp"

namespace rehearse::sim {
namespace {

using workloads::LoraTarget;
using workloads::Unit;
using workloads::UnitKind;
using workloads::Workload;

// A linear layer between two widths, and what its adapter keeps for backward.
struct Adapted {
  std::int64_t in, out;
  bool adapted;
  int read = -1, mask = -1, low = -1;  // what a read, the mask of its dropout, what a made
};

class AdaptedWriter : private TorchOperators {
 public:
  AdaptedWriter(const Workload& workload, const workloads::MemoryHabits& habits, UnitTensors& made)
      : TorchOperators(workload, made), loss_bytes_(habits.loss_bytes), outputs_kept_(habits.outputs_kept) {}

  void embedding() {
    take_as(UnitTensors::output, full());
    start_backward();
    give(UnitTensors::output_gradient);
  }

  // Its table is frozen: the product keeps nothing of its input.
  void head() {
    const int exact = normalize_frozen();
    const int normed = normed_;
    give(UnitTensors::input);
    const int logits = take(wide(s_.vocab));
    give(normed);
    const double wide_logits = tokens() * static_cast<double>(s_.vocab) * exact_bytes;
    const int output = take(wide_logits);
    if (!held_narrow()) give(logits);
    const int shifted = outputs_kept_ || held_narrow() ? take(wide_logits) : -1;
    const int log_probabilities = take(wide_logits);
    give(shifted);
    if (held_narrow()) give(logits);
    if (!outputs_kept_) give(output);
    start_backward();
    const int of_loss = take(wide_logits), of_logits = take(wide_logits);
    give(log_probabilities);
    give(of_loss);
    const int narrow = take(wide(s_.vocab));
    give(of_logits);
    hold_workspace(backward_workspace);
    const int part = take(full());
    give(narrow);
    take_as(UnitTensors::input_gradient, full());
    norm_backward(part, exact, false);
    if (outputs_kept_) give(output);
  }

  void layer() {
    forward(Pass::dropped);
    start_backward();
    forward(Pass::again);
    mlp_backward();
    attention_backward();
    give(UnitTensors::input);
    pass_on(UnitTensors::output_gradient, UnitTensors::input_gradient);
  }

 private:
  // Of log-probabilities when they are made: the logits in 16 bits too.
  [[nodiscard]] bool held_narrow() const { return loss_bytes_ > 3 * exact_bytes; }
  [[nodiscard]] double exact(std::int64_t width) const { return tokens() * static_cast<double>(width) * exact_bytes; }
  [[nodiscard]] double by_adapter(std::int64_t width) const {
    return tokens() * static_cast<double>(width) * workloads::adapter_element(w_, s_);
  }
  [[nodiscard]] bool casts_to_adapter() const { return workloads::adapter_element(w_, s_) > s_.element; }
  [[nodiscard]] Adapted between(std::int64_t in, std::int64_t out, LoraTarget fused, LoraTarget own) const {
    return {in, out, w_.lora.adapts(fused) || w_.lora.adapts(own)};
  }
  // The matrix in 16 bits while it is multiplied with (bitsandbytes' dequantize_4bit).
  [[nodiscard]] int widened(const Adapted& linear) {
    return w_.lora.nf4 ? take(static_cast<double>(linear.in * linear.out) * s_.element) : -1;
  }
  // Adapters that read it as it is keep it, once: who computes again gives it when their backward is over.
  int keep_or_give(int tensor, bool adapted) {
    if (pass_ == Pass::again && adapted && w_.lora.dropout == 0 && !casts_to_adapter()) return tensor;
    give(tensor);
    return -1;
  }

  // Of LlamaRMSNorm with a frozen weight: its input in fp32 is kept. normed_: what it made.
  int normalize_frozen() {
    int exact = take(exact_states());
    give(take(exact_states()));  // squares
    const int scaled = take(exact_states());
    drop(exact);
    const int narrow = take(full());
    give(scaled);
    normed_ = take(full());
    give(narrow);
    return exact;
  }
  // Gives `gradient`; in_place: added to the gradient of the branch beside it.
  void norm_backward(int gradient, int kept, bool in_place) {
    const int scaled = take(full());
    give(gradient);
    const int exact = take(exact_states());
    give(scaled);
    const int by_factor = take(exact_states());
    give(take(exact_states()));  // for the factor's gradient
    give(exact);
    const int mean = take(exact_states()), doubled = take(exact_states()), squares = take(exact_states());
    give(doubled);
    give(mean);
    give(squares);
    give(kept);
    if (in_place) give(take(full()));
    give(by_factor);
  }

  // y + s b a dropout(x): what it makes. What it reads stays the caller's.
  int multiply(Adapted& linear) {
    const int matrix = widened(linear);
    int made = take(wide(linear.out));
    give(matrix);
    hold_workspace(forward_workspace);
    if (!linear.adapted) return made;
    if (w_.lora.nf4) give(std::exchange(made, take(wide(linear.out))));  // a copy (bnb.py)
    const int cast = casts_to_adapter() ? take(by_adapter(linear.in)) : -1;
    linear.read = cast;
    if (w_.lora.dropout > 0) {
      linear.read = take(by_adapter(linear.in));
      linear.mask = take(tokens() * static_cast<double>(linear.in) * workloads::adapter_mask_bytes(w_, s_));
      drop(linear.mask);
      give(cast);
    }
    linear.low = take(by_adapter(w_.lora.rank));
    drop(linear.read);
    const int high = take(by_adapter(linear.out));
    drop(linear.low);
    const int scaled = take(by_adapter(linear.out));
    give(high);
    const int sum = take(by_adapter(linear.out));
    give(scaled);
    give(made);
    if (!casts_to_adapter()) return sum;
    made = take(wide(linear.out));
    give(sum);
    return made;
  }
  // The gradient of its input; `gradient` is given.
  int multiply_backward(Adapted& linear, int gradient) {
    int part = -1;
    if (linear.adapted) {
      const int exact = casts_to_adapter() ? take(by_adapter(linear.out)) : -1;
      const int scaled = take(by_adapter(linear.out));
      const int low = take(by_adapter(w_.lora.rank));
      make_gradient(static_cast<double>(linear.out * w_.lora.rank) * workloads::adapter_element(w_, s_));
      give(scaled);
      give(exact);
      give(std::exchange(linear.low, -1));
      part = take(by_adapter(linear.in));
      make_gradient(static_cast<double>(linear.in * w_.lora.rank) * workloads::adapter_element(w_, s_));
      give(low);
      give(std::exchange(linear.read, -1));
      if (linear.mask >= 0) give(std::exchange(part, take(by_adapter(linear.in))));
      give(std::exchange(linear.mask, -1));
      if (casts_to_adapter()) give(std::exchange(part, take(wide(linear.in))));
    }
    const int matrix = widened(linear);
    const int made = take(wide(linear.in));
    give(matrix);
    give(gradient);
    give(part);
    return made;
  }

  void forward(Pass pass) {
    pass_ = pass;
    attention_forward();
    mlp_forward();
  }

  // q cos + rotate(q) sin, each of them a tensor.
  int rotated(int product, std::int64_t width) {
    const int by_cosine = take(wide(width)), half = take(wide(width / 2)), turned = take(wide(width));
    give(half);
    const int by_sine = take(wide(width));
    give(turned);
    const int made = take(wide(width));
    for (const int tensor : {by_sine, by_cosine, product}) give(tensor);
    return made;
  }

  // A copy for every query head.
  int repeated(int tensor) {
    if (!workloads::repeats_kv(w_, s_)) return tensor;
    const int made = take(wide(s_.query_width));
    give(tensor);
    return made;
  }

  void attention_forward() {
    first_ = normalize_frozen();
    query_of_ = between(s_.hidden, s_.query_width, LoraTarget::linear_qkv, LoraTarget::linear_q);
    key_of_ = between(s_.hidden, s_.kv_width, LoraTarget::linear_qkv, LoraTarget::linear_k);
    value_of_ = between(s_.hidden, s_.kv_width, LoraTarget::linear_qkv, LoraTarget::linear_v);
    out_of_ = between(s_.query_width, s_.hidden, LoraTarget::linear_proj, LoraTarget::linear_proj);
    const int query = multiply(query_of_), key = multiply(key_of_);
    value_ = multiply(value_of_);
    first_read_ = keep_or_give(normed_, query_of_.adapted || key_of_.adapted || value_of_.adapted);
    query_ = rotated(query, s_.query_width);
    key_ = repeated(rotated(key, s_.kv_width));
    value_ = repeated(value_);
    context_ = take(wide(s_.query_width));
    statistics_ = take(exact(s_.heads));
    for (int* tensor : {&query_, &key_, &value_, &statistics_}) drop(*tensor);
    const int sum = multiply(out_of_);
    drop(context_);
    middle_ = take(full());
    give(sum);
  }

  void mlp_forward() {
    second_ = normalize_frozen();
    gate_of_ = between(s_.hidden, s_.ffn, LoraTarget::linear_fc1, LoraTarget::linear_fc1_gate);
    up_of_ = between(s_.hidden, s_.ffn, LoraTarget::linear_fc1, LoraTarget::linear_fc1_up);
    down_of_ = between(s_.ffn, s_.hidden, LoraTarget::linear_fc2, LoraTarget::linear_fc2);
    gate_ = multiply(gate_of_);
    active_ = take(wide(s_.ffn));
    drop(gate_);
    up_ = multiply(up_of_);
    const int product = take(wide(s_.ffn));
    drop(active_);
    drop(up_);
    second_read_ = keep_or_give(normed_, gate_of_.adapted || up_of_.adapted);
    const int sum = multiply(down_of_);
    product_ = keep_or_give(product, down_of_.adapted);
    if (pass_ == Pass::again) {
      give(take(full()));
    } else {
      take_as(UnitTensors::output, full());
    }
    give(sum);
    give(middle_);
  }

  void mlp_backward() {
    const int product = multiply_backward(down_of_, -1);
    give(product_);
    const int active = take(wide(s_.ffn)), up = take(wide(s_.ffn));
    for (const int tensor : {product, up_, active_}) give(tensor);
    const int part = multiply_backward(up_of_, up);
    const int gate = take(wide(s_.ffn));
    for (const int tensor : {active, gate_}) give(tensor);
    give(multiply_backward(gate_of_, gate));
    give(second_read_);
    norm_backward(part, second_, true);
  }

  void attention_backward() {
    const int context = multiply_backward(out_of_, -1);
    int query = take(wide(s_.query_width)), key = take(wide(s_.kv_width));
    const int value = take(wide(s_.kv_width)), sums = take(exact(s_.query_width));
    const int per_head = s_.kv_heads < s_.heads ? take(2 * wide(s_.query_width)) : -1;
    for (const int tensor : {sums, per_head, context, query_, key_, value_, context_, statistics_}) give(tensor);
    key = rotated(key, s_.kv_width);
    query = rotated(query, s_.query_width);
    const int part = multiply_backward(value_of_, value);
    give(multiply_backward(key_of_, key));
    give(multiply_backward(query_of_, query));
    give(first_read_);
    norm_backward(part, first_, true);
  }

  double loss_bytes_;
  bool outputs_kept_;
  int normed_ = -1, first_ = -1, second_ = -1, middle_ = -1, first_read_ = -1, second_read_ = -1, product_ = -1;
  int query_ = -1, key_ = -1, value_ = -1, context_ = -1, statistics_ = -1, gate_ = -1, active_ = -1, up_ = -1;
  Adapted query_of_{}, key_of_{}, value_of_{}, out_of_{}, gate_of_{}, up_of_{}, down_of_{};
};

}  // namespace

bool knows_adapted_tensors(const Workload& workload, const workloads::MemoryHabits& habits) {
  const workloads::Parallel& parallel = workload.parallel;
  const workloads::KernelFusions& fusions = workload.fusions;
  const bool alone = parallel.tp == 1 && parallel.pp == 1 && parallel.cp == 1 && workload.model.dropout == 0;
  const bool again =
      workload.recompute.kind == workloads::RecomputeKind::full && workload.recompute.full_layers < 0 && workload.recompute.kept.empty();
  const bool eager = !fusions.compiled && !workloads::autocasts(workload) && workloads::unfused_norm_bytes(workload) > 0 && !fusions.rope &&
                     !fusions.activation && fusions.separate_qkv && fusions.separate_gate && !fusions.fused_adapters;
  const int zero = workload.optimizer.zero_stage;
  const bool sharding = zero == 0 || (zero == 3 && habits.sharded_master && !workload.optimizer.copies);
  const bool loss = !fusions.cross_entropy && fusions.loss_pieces <= 1;
  // Inputs that frozen units hold stay longer than any tensor of a unit does.
  return alone && again && eager && sharding && loss && !workload.optimizer.no_sync && workload.model.gated() &&
         workload.model.positions == workloads::Positions::rope && habits.gradients_freed && !habits.planned &&
         !workloads::holds_frozen_inputs(workload, habits);
}

UnitTensors adapted_tensors(const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  UnitTensors made;
  AdaptedWriter writer(workload, habits, made);
  if (unit.kind == UnitKind::embedding) {
    writer.embedding();
  } else if (unit.kind == UnitKind::head) {
    writer.head();
  } else {
    writer.layer();
  }
  return made;
}

}  // namespace rehearse::sim
