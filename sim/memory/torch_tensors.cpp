#include "sim/memory/torch_tensors.hpp"

#include <array>
#include <utility>

#include "sim/memory/torch_operators.hpp"

namespace rehearse::sim {
namespace {

using workloads::Unit;
using workloads::UnitKind;
using workloads::Workload;

// Per logit, of a loss of several operators: logits in 16 bits and in fp32 and the log-probabilities. A stack whose loss holds less takes
// it in one kernel or in pieces.
constexpr double least_by_operators = 2 + 2 * exact_bytes;

class TorchWriter : private TorchOperators {
 public:
  TorchWriter(const Workload& workload, const workloads::MemoryHabits& habits, UnitTensors& made)
      : TorchOperators(workload, made),
        selective_(workload.recompute.every_second_product()),
        loss_bytes_(habits.loss_bytes),
        outputs_kept_(habits.outputs_kept),
        in_place_(workloads::writes_over_halves(workload, habits)) {}

  // Of a table that is the head's too autograd adds this gradient to the head's.
  void embedding(bool own_gradient) {
    take_as(UnitTensors::output, residual());
    start_backward();
    const double gradient = casts_ ? table() / s_.element * exact_bytes : table();
    if (own_gradient) {
      make_gradient(gradient);
    } else {
      give(take(gradient));
    }
    give(UnitTensors::output_gradient);
  }

  // The loss as operators holds logits in 16 bits and in fp32 and their log-probabilities, then the gradients of these and of the logits.
  void head() {
    NormedInput normed;
    normalize(normed);
    drop_input();
    const int read = cast(normed.output, normed.casts[0]), weight = cast_weight(s_.vocab, false);
    const int logits = take(wide(s_.vocab));
    const double exact = tokens() * static_cast<double>(s_.vocab) * exact_bytes;
    const bool fused = loss_bytes_ > 0 ? loss_bytes_ < least_by_operators : w_.fusions.cross_entropy;
    const int copy = fused && !outputs_kept_ ? -1 : take(exact);
    const int log_probabilities = fused ? logits : take(exact);
    if (!outputs_kept_) give(copy);
    if (!fused) give(logits);
    if (casts_input_) give(normed.output);
    start_backward();
    const int of_loss = fused ? -1 : take(exact);
    const int of_copy = fused ? -1 : take(exact);
    const bool held = loss_bytes_ > 3 * exact_bytes;  // until the gradient is cast
    if (!fused && !held) give(log_probabilities);
    if (!held) give(of_loss);
    const int gradient = take(wide(s_.vocab));
    if (fused || held) give(log_probabilities);
    if (held) give(of_loss);
    give(of_copy);
    hold_workspace(backward_workspace);
    const int part = product_backward(s_.vocab, read, weight);
    give(gradient);
    const int exact_part = to_residual(part);
    if (!casts_input_) give(normed.output);
    take_as(UnitTensors::input_gradient, residual());
    normalize_backward(normed, exact_part, false);
    give_input();
    if (outputs_kept_) give(copy);
  }

  // Fused with its loss (Liger's fused_linear_cross_entropy.py): the gradients of its input and of the table are made in forward, piece by
  // piece, and handed on in backward. The product that is added to the table's is a tensor of its own.
  void head_in_pieces() {
    NormedInput normed;
    normalize(normed);
    drop_input();
    hold_workspace(forward_workspace);
    const int part = take(full()), gradient = take(table());
    const double pieces = w_.fusions.loss_pieces, logits = tokens() * static_cast<double>(s_.vocab) / pieces;
    const double most = loss_bytes_ > 0 ? loss_bytes_ : w_.fusions.cross_entropy ? s_.element : 2 * (s_.element + exact_bytes);
    const int piece = take(logits * most);
    give(take(full() / pieces));
    give(take(table()));
    give(piece);
    give(normed.output);
    start_backward();
    give(gradient);
    make_gradient(table());
    take_as(UnitTensors::input_gradient, residual());
    normalize_backward(normed, part, false);
    give_input();
  }

  void layer(bool recomputed) {
    if (recomputed || selective_) {
      forward(Pass::dropped);
      start_backward();
      forward(Pass::again);
    } else {
      forward(Pass::whole);
      start_backward();
    }
    mlp_backward();
    attention_backward();
    give_input();
    give(last_product_);
    pass_on(UnitTensors::output_gradient, UnitTensors::input_gradient);
  }

 private:
  [[nodiscard]] bool gated_mlp() const { return w_.model.gated(); }
  // The input in 16 bits is the norm's alone where that is one kernel.
  void drop_input() {
    if (by_operators_ && !casts_ && pass_ == Pass::whole) give(UnitTensors::input);
  }

  void drop_middle() {
    if (by_operators_ && !casts_) give(std::exchange(middle_, -1));
    drop(middle_);
  }
  // What the norm read, where it still has that.
  void give_input() {
    if (!by_operators_ || casts_ || pass_ != Pass::whole) give(UnitTensors::input);
  }

  void forward(Pass pass) {
    pass_ = pass;
    attention_forward();
    mlp_forward();
  }

  // Where every second product is kept these are of queries, values, the first of the MLP and its last one.
  int kept_product(NormedInput& normed, std::size_t i, std::int64_t width, int& kept) {
    if (selective_ && pass_ == Pass::again) {
      cast(normed.output, normed.casts[i]);
      normed.weights[i] = cast_weight(width, false);
      return std::exchange(kept, -1);
    }
    const int made = product(normed, i, width);
    if (selective_ && pass_ == Pass::dropped) kept = made;
    return made;
  }
  // Given unless it is kept until it is computed again.
  void drop_product(int& tensor, int kept) {
    if (pass_ == Pass::dropped && tensor != kept) give(tensor);
  }

  void attention_forward() {
    first_ = {};
    normalize(first_);
    const std::int64_t kv = s_.kv_width;
    if (gated_mlp()) {
      int query = kept_product(first_, 0, s_.query_width, kept_query_);
      hold_workspace(forward_workspace);
      const int key = product(first_, 1, kv);
      value_ = kept_product(first_, 2, kv, kept_value_);
      query_ = rotated(query, s_.query_width, kept_query_);
      key_ = repeated(rotated(key, kv, -1), -1);
      value_ = repeated(value_, kept_value_);
    } else {
      query_ = product(first_, 0, s_.query_width + 2 * kv);  // one product of all three
      hold_workspace(forward_workspace);
    }
    const bool there = selective_ && pass_ == Pass::again;
    if (!there) context_ = take(wide(s_.query_width));
    if (!there) statistics_ = take(tokens() * static_cast<double>(s_.heads) * exact_bytes);
    attended_weight_ = cast_weight(s_.query_width, pass_ == Pass::dropped);
    cast_narrow(wide(s_.query_width), matrix(s_.query_width));
    const int sum = take(full());
    if (casts_input_) give(first_.output);
    if (!casts_input_) drop(first_.output);
    for (int* tensor : {&query_, &key_}) drop(*tensor);
    drop_product(value_, kept_value_);
    if (!selective_) {
      drop(context_);
      drop(statistics_);
    }
    middle_ = take(casts_input_ ? exact_states() : full());
    give(sum);
    drop_input();
  }
  // A copy for every query head.
  int repeated(int tensor, int kept) {
    if (!workloads::repeats_kv(w_, s_)) return tensor;
    const int made = take(wide(s_.query_width));
    if (tensor != kept) give(tensor);
    return made;
  }
  // Out of one product into the tensor that attention reads; as operators by way of fp32.
  int rotated(int product, std::int64_t width, int kept) {
    if (w_.model.positions != workloads::Positions::rope) return product;
    const double exact = tokens() * static_cast<double>(width) * exact_bytes;
    int made = -1;
    if (w_.fusions.compiled) {
      made = take(wide(width));
    } else {
      const int copy = take(exact), turned = take(exact);
      give(copy);
      made = take(wide(width));
      give(turned);
    }
    if (product != kept) give(product);
    return made;
  }

  void mlp_forward() {
    second_ = {};
    normalize(second_);
    gate_ = kept_product(second_, 0, s_.ffn, kept_gate_);
    const bool apart = !gated_mlp() || !w_.fusions.activation;
    if (apart && !(gated_mlp() && w_.fusions.compiled)) active_ = take(wide(s_.ffn));
    if (active_ >= 0) drop_product(gate_, kept_gate_);
    if (gated_mlp()) {
      up_ = product(second_, 1, s_.ffn);
      product_ = take(wide(s_.ffn));
      if (active_ < 0) drop_product(gate_, kept_gate_);
      drop(active_);
      drop(up_);
    } else {
      product_ = std::exchange(active_, -1);
    }
    if (casts_input_) give(second_.output);
    last_weight_ = cast_weight(s_.ffn, pass_ == Pass::dropped);
    if (pass_ == Pass::again) {
      drop_middle();
      return;
    }
    cast_narrow(wide(s_.ffn), matrix(s_.ffn));
    const int sum = take(full());
    drop(product_);
    if (!casts_input_) drop(second_.output);
    take_as(UnitTensors::output, residual());
    if (selective_ && !w_.fusions.compiled) {  // no gradient reads it: compiled it is not saved
      last_product_ = sum;
    } else {
      give(sum);
    }
    drop_middle();
  }

  int layer_product_backward(std::int64_t width, int read, int weight) {
    cast_narrow(full() + wide(width), matrix(width));
    return product_backward(width, read, weight);
  }

  void mlp_backward() {
    const int narrow = casts_ ? take(full()) : -1;
    cast_narrow(full() + wide(s_.ffn), matrix(s_.ffn));
    const int product = take(wide(s_.ffn));
    weight_gradient(matrix(s_.ffn));
    for (const int tensor : {narrow, product_, last_weight_}) give(tensor);
    int gate = -1, part = -1;
    if (gated_mlp()) {
      const bool over = in_place_ && active_ < 0;
      const int active = over ? gate_ : take(wide(s_.ffn)), up = over ? up_ : take(wide(s_.ffn));
      give(product);
      if (!over) give(up_);
      give(active_);
      if (!over && active_ < 0) give(gate_);
      part = to_residual(layer_product_backward(s_.ffn, second_.casts[1], second_.weights[1]));
      give(up);
      gate = active;
      if (active_ >= 0) {
        gate = take(wide(s_.ffn));
        give(active);
        give(gate_);
      }
    } else {
      gate = take(wide(s_.ffn));
      give(product);
      give(gate_);
    }
    const int other = to_residual(layer_product_backward(s_.ffn, second_.casts[0], second_.weights[0]));
    give(gate);
    give(part >= 0 ? other : -1);
    if (!casts_input_) give(second_.output);
    normalize_backward(second_, part >= 0 ? part : other, true);
    give(middle_);
  }

  void attention_backward() {
    const int narrow = casts_ ? take(full()) : -1;
    cast_narrow(full() + wide(s_.query_width), matrix(s_.query_width));
    const int context = take(wide(s_.query_width));
    weight_gradient(matrix(s_.query_width));
    for (const int tensor : {narrow, attended_weight_}) give(tensor);
    int query = -1, key = -1, value = -1;
    attend_backward(context, query, key, value);
    int part = -1;
    if (gated_mlp()) {
      key = rotated(key, s_.kv_width, -1);
      query = rotated(query, s_.query_width, -1);
      const std::array<std::pair<int, std::int64_t>, 3> made{{{query, s_.query_width}, {key, s_.kv_width}, {value, s_.kv_width}}};
      for (std::size_t i = 3; i-- > 0;) {
        const int other = to_residual(layer_product_backward(made[i].second, first_.casts[i], first_.weights[i]));
        give(made[i].first);
        if (part >= 0) give(other);
        if (part < 0) part = other;
      }
    } else {
      part = to_residual(layer_product_backward(s_.query_width + 2 * s_.kv_width, first_.casts[0], first_.weights[0]));
      give(query);
    }
    if (!casts_input_) give(first_.output);
    normalize_backward(first_, part, true);
  }
  // Flash attention adds up queries' gradients in fp32, and makes keys' and values' of every head before it sums those that share them.
  void attend_backward(int context, int& query, int& key, int& value) {
    query = take(wide(s_.query_width));
    key = take(wide(s_.kv_width));
    value = take(wide(s_.kv_width));
    const int exact = take(2 * wide(s_.query_width));
    const int per_head = s_.kv_heads < s_.heads ? take(2 * wide(s_.query_width)) : -1;
    for (const int tensor : {exact, per_head, context, query_, key_, value_, context_, statistics_}) give(tensor);
    if (gated_mlp()) return;
    const int joined = take(wide(s_.query_width + 2 * s_.kv_width));
    for (const int tensor : {query, key, value}) give(tensor);
    query = joined;
    key = value = -1;
  }

  bool selective_;
  double loss_bytes_;
  bool outputs_kept_;
  bool in_place_;  // the activation's gradients
  NormedInput first_, second_;
  int query_ = -1, key_ = -1, value_ = -1, context_ = -1, statistics_ = -1, attended_weight_ = -1, middle_ = -1;
  int gate_ = -1, up_ = -1, active_ = -1, product_ = -1, last_weight_ = -1, last_product_ = -1;
  int kept_query_ = -1, kept_value_ = -1, kept_gate_ = -1;
};

}  // namespace

bool knows_torch_tensors(const Workload& workload, const workloads::MemoryHabits& habits) {
  const workloads::Parallel& parallel = workload.parallel;
  const bool alone = parallel.tp == 1 && parallel.pp == 1 && parallel.cp == 1 && workload.model.dropout == 0;
  const workloads::RecomputeKind kind = workload.recompute.kind;
  const bool kept =
      workload.recompute.kept.empty() && (kind != workloads::RecomputeKind::selective || workload.recompute.every_second_product());
  const bool master = bytes_of(workload.precision.weights) < bytes_of(workload.precision.optimizer);
  const int zero = workload.optimizer.zero_stage;
  const bool one_type = !master && bytes_of(workload.precision.gradients) == bytes_of(workload.precision.weights);
  const bool whole = zero == 0 && (one_type || workloads::autocasts(workload));
  const bool sharded = zero == 3 && habits.sharded_master;
  const bool deepspeed = zero > 0 && habits.live_parameters > 0 && !habits.sharded_master && master && !workloads::autocasts(workload);
  if ((workload.optimizer.on_cpu && !(deepspeed && zero == 3)) || (workload.fusions.loss_pieces > 1 && workloads::autocasts(workload)))
    return false;
  return alone && kept && (whole || sharded || deepspeed) && !workload.optimizer.no_sync && habits.gradients_freed && !habits.planned;
}

UnitTensors torch_tensors(const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  UnitTensors made;
  TorchWriter writer(workload, habits, made);
  if (unit.kind == UnitKind::embedding) {
    writer.embedding(!shares_table(workload));
  } else if (unit.kind == UnitKind::head) {
    workload.fusions.loss_pieces > 1 ? writer.head_in_pieces() : writer.head();
  } else {
    writer.layer(unit.recomputed);
  }
  return made;
}

}  // namespace rehearse::sim
