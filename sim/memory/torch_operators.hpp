// PyTorch's operators as a unit is made of them: products, norms and casts with what they leave for backward and take there.
#pragma once

#include <array>
#include <utility>

#include "sim/memory/tensor_writer.hpp"

namespace rehearse::sim {

inline constexpr double exact_bytes = 4;  // of fp32

// A norm, and the products that read its output.
struct NormedInput {
  int exact = -1, scaled = -1;  // of a norm of several operators: its input in fp32, and what its weight multiplies
  int output = -1;
  std::array<int, 3> casts{-1, -1, -1}, weights{-1, -1, -1};  // autocast's, for each product
};

class TorchOperators : protected TensorWriter {
 public:
  TorchOperators(const workloads::Workload& workload, UnitTensors& made)
      : TensorWriter(workload, made),
        casts_(workloads::autocasts(workload)),
        casts_input_(casts_ && !workload.fusions.compiled),
        by_operators_(workloads::unfused_norm_bytes(workload) > 0),
        narrow_(s_.low_precision() ? bytes_of(s_.linear) / s_.element : 0),
        gathers_narrow_(workload.precision.param_gather.has_value()) {}

 protected:
  // whole: kept for the backward that follows; dropped: what is read for the last time goes; again: computed once more for backward, up to
  // the last tensor that it reads.
  enum class Pass { whole, dropped, again };

  [[nodiscard]] double residual() const { return casts_ ? exact_states() : full(); }
  [[nodiscard]] double exact_states() const { return tokens() * static_cast<double>(s_.hidden) * exact_bytes; }
  void drop(int& tensor) {
    if (pass_ == Pass::dropped) give(std::exchange(tensor, -1));
  }
  // What a product reads of a tensor that is fp32 under autocast.
  int cast(int tensor, int& copy) {
    if (!casts_input_) return tensor;
    copy = take(full());
    return copy;
  }
  // Autocast keeps its copies of weights to the end of the model's forward.
  int cast_weight(std::int64_t width, bool recomputed) {
    if (!casts_) return -1;
    if (!recomputed) return take(matrix(width));
    take_for_forward(matrix(width));
    return -1;
  }
  // A layer's product in 8 bits by torchao (matmul_with_hp_or_float8_args): what it reads is kept in 16 bits, and the casts of that and of
  // the weight, unless it was gathered so, are there while it works.
  void cast_narrow(double read, double weight) {
    if (narrow_ == 0) return;
    const int copy = take(read * narrow_), of_weight = gathers_narrow_ ? -1 : take(weight * narrow_);
    give(copy);
    give(of_weight);
  }
  int product(NormedInput& normed, std::size_t i, std::int64_t width) {
    cast(normed.output, normed.casts[i]);
    normed.weights[i] = cast_weight(width, pass_ == Pass::dropped);
    cast_narrow(full(), matrix(width));
    const int made = take(wide(width));
    drop(normed.casts[i]);
    return made;
  }
  // The gradients of a product's input, which it gives, and of its weight; what it read goes.
  int product_backward(std::int64_t width, int read, int weight) {
    const int part = take(full());
    weight_gradient(matrix(width));
    if (casts_input_) give(read);
    give(weight);
    return part;
  }
  void weight_gradient(double bytes) {
    if (!casts_) {
      make_gradient(bytes);
      return;
    }
    const int narrow = take(bytes);
    make_gradient(bytes / s_.element * exact_bytes);
    give(narrow);
  }
  int to_residual(int part) {
    if (!casts_input_) return part;
    const int exact = take(exact_states());
    give(part);
    return exact;
  }

  void normalize(NormedInput& normed) {
    if (by_operators_) {
      if (!casts_) normed.exact = take(exact_states());
      give(take(exact_states()));  // squares
      const int scaled = take(exact_states());
      if (casts_) {
        normed.scaled = scaled;
      } else {
        drop(normed.exact);
        normed.scaled = take(full());
        give(scaled);
      }
    }
    normed.output = take(casts_input_ ? exact_states() : full());
    drop(normed.scaled);
  }
  // in_place: added to the gradient of the branch beside it; otherwise it is what the caller has just taken.
  void normalize_backward(NormedInput& normed, int gradient, bool in_place) {
    if (by_operators_) {
      operators_backward(normed, gradient, in_place);
      return;
    }
    const int made = in_place ? take(residual()) : -1;
    give(gradient);
    give(made);
  }
  void operators_backward(NormedInput& normed, int gradient, bool in_place) {
    const int scaled = take(residual());
    give(take(residual()));  // for the weight's gradient
    give(gradient);
    give(normed.scaled);
    int exact = scaled;
    if (!casts_) {
      exact = take(exact_states());
      give(scaled);
    }
    const int by_factor = take(exact_states());
    give(take(exact_states()));  // for the factor's gradient
    give(exact);
    const int mean = take(exact_states());
    const int doubled = take(exact_states()), squares = take(exact_states());
    give(doubled);
    give(mean);
    give(squares);
    give(normed.exact);
    if (in_place && !casts_) give(take(full()));
    give(by_factor);
  }

  // Autocast; a compiler writes what products read, and the middle of a layer, in 16 bits at once.
  bool casts_, casts_input_;
  bool by_operators_;  // norms
  double narrow_;      // of a value in 16 bits, in a layer's products; 0: none are in 8
  bool gathers_narrow_;
  Pass pass_ = Pass::whole;
};

}  // namespace rehearse::sim
