#include "sim/memory/megatron_2021_tensors.hpp"

#include <initializer_list>
#include <utility>

#include "sim/memory/tensor_writer.hpp"

namespace rehearse::sim {
namespace {

using workloads::Unit;
using workloads::UnitKind;
using workloads::Workload;

constexpr double loss_bytes = 4;  // of the logits' copy that becomes probabilities and then their gradient in place

class Megatron2021Writer : private TensorWriter {
 public:
  // buffer: bytes of the tensor that is handed to the product of scores and kept; 0: of each layer one of its own.
  Megatron2021Writer(const Workload& workload, double buffer, UnitTensors& made) : TensorWriter(workload, made), buffer_(buffer) {}

  // Words, positions, their sum, what dropout leaves of it and that with positions before sequences, one after another. The host reads
  // the sizes of what the ranks of tp are sent (mpu/data.py).
  void embedding(bool shared) {
    wait_for_gpu();
    const int words = summed(take(full())), positions = take(full()), sum = take(full());
    for (const int tensor : {words, positions}) give(tensor);
    const int mask = mask_of(full());
    const int left = s_.dropout ? take(full()) : sum;
    if (left != sum) give(sum);
    take_as(UnitTensors::output, full());
    give(left);
    start_backward();
    const int gradient = take(full());
    give(UnitTensors::output_gradient);
    give(mask);
    make_gradient(static_cast<double>(s_.sequence * s_.hidden) * bytes_of(w_.precision.weights));
    if (shared) {
      give(take(table()));  // added to the head's
    } else {
      make_gradient(table());
    }
    give(gradient);
  }

  // The norm reads a copy with sequences before positions. Logits live, beside their copy in fp32, until the loss is known. What is
  // assigned through masks there the host has to count first (PyTorch before 1.10).
  void head() {
    const int turned = take(full());
    give(UnitTensors::input);
    const int norm = take(full());
    const int logits = take(wide(s_.vocab)), probabilities = take(tokens() * static_cast<double>(s_.vocab) * loss_bytes);
    wait_for_gpu();
    give(logits);
    start_backward();
    const int gradient = take(wide(s_.vocab));
    give(probabilities);
    const int part = summed(take(full()));
    make_weight_gradient(table());
    for (const int tensor : {gradient, norm}) give(tensor);
    take_as(UnitTensors::input_gradient, full());
    for (const int tensor : {part, turned}) give(tensor);
  }

  void layer(const Unit& unit) {
    forward(!unit.recomputed);
    const bool sharded = unit.recomputed && w_.recompute.shards_inputs;
    const int part = sharded ? take(full() / static_cast<double>(s_.tp)) : -1;
    if (sharded) give(UnitTensors::input);
    start_backward();
    if (sharded) {
      take_as(UnitTensors::input, full());
      communicated(UnitTensors::input);
      give(part);
    }
    if (unit.recomputed) {
      forward(true);
      give(UnitTensors::output);
    }
    mlp_backward();
    attention_backward();
    give(UnitTensors::input);
  }

 private:
  [[nodiscard]] double scores() const { return wide(s_.heads * s_.sequence); }
  [[nodiscard]] std::int64_t mixed_width() const { return s_.query_width + 2 * s_.kv_width; }
  int mask_of(double bytes) { return s_.dropout ? take(bytes / s_.element) : -1; }
  int summed(int tensor) { return s_.tp > 1 ? communicated(tensor) : tensor; }
  void give_all(std::initializer_list<int*> tensors) {
    for (int* tensor : tensors) give(std::exchange(*tensor, -1));
  }
  // Where the product adds it to the sum itself there is none.
  void make_weight_gradient(double bytes) {
    const bool added = w_.fusions.gradient_accumulation && bytes_of(w_.precision.gradients) > bytes_of(w_.precision.weights);
    if (!added) make_gradient(bytes);
  }

  // kept: for a backward that follows. What a function's names hold goes when it returns: the scores with attention, both sums with the
  // layer.
  void forward(bool kept) {
    const int attended = attention_forward(kept);
    middle_ = take(full());
    mask_ = mask_of(full());
    norm2_ = take(full());
    inner_ = take(wide(s_.ffn));
    active_ = take(wide(s_.ffn));
    if (!kept) give_all({&inner_});
    const int sum = summed(take(full()));
    if (!kept) give_all({&active_});
    take_as(UnitTensors::output, full());
    mask2_ = mask_of(full());
    for (const int tensor : {attended, sum}) give(tensor);
    if (!kept) give_all({&norm2_, &middle_, &mask_, &mask2_});
  }

  // The scores are a product into a tensor of their own beside the empty one that is handed to it (torch.baddbmm).
  int empty_scores() {
    if (buffer_ == 0) return take(scores());
    hold(scores_buffer, buffer_);
    return -1;
  }
  int attention_forward(bool kept) {
    norm_ = take(full());
    mixed_ = take(wide(mixed_width()));
    const int empty = empty_scores(), made = take(scores());
    give(empty);
    probabilities_ = take(scores());
    left_ = s_.dropout ? take(scores()) : -1;
    scores_mask_ = mask_of(scores());
    if (!kept && s_.dropout) give_all({&probabilities_, &scores_mask_});
    const int by_head = take(wide(s_.query_width));
    context_ = take(wide(s_.query_width));
    give(by_head);
    const int sum = summed(take(full()));
    give(made);
    if (!kept) give_all({&norm_, &mixed_, &probabilities_, &left_, &context_});
    return sum;
  }

  void mlp_backward() {
    const int left = s_.dropout ? take(full()) : UnitTensors::output_gradient;
    const int active = take(wide(s_.ffn));
    make_weight_gradient(matrix(s_.ffn));
    if (s_.dropout) give(left);
    give_all({&mask2_, &active_});
    const int inner = take(wide(s_.ffn));
    give(active);
    give_all({&inner_});
    const int part = summed(take(full()));
    make_weight_gradient(matrix(s_.ffn));
    give(inner);
    give_all({&norm2_});
    gradient_ = with_residual(part, middle_, UnitTensors::output_gradient);
  }

  // Of a norm's input: with what goes past it.
  int with_residual(int part, int& input, int residual) {
    const int norm = take(full());
    give(part);
    give_all({&input});
    const int sum = take(full());
    for (const int tensor : {norm, residual}) give(tensor);
    return sum;
  }

  void attention_backward() {
    const int left = s_.dropout ? take(full()) : gradient_;
    const int context = take(wide(s_.query_width));
    make_weight_gradient(matrix(s_.query_width));
    if (s_.dropout) give(left);
    give_all({&mask_, &context_});
    const int of_left = take(scores()), value = take(wide(s_.kv_width));
    give(context);
    give_all({&left_});
    const int of_scores = s_.dropout ? take(scores()) : of_left;  // softmax works in place
    if (of_scores != of_left) give(of_left);
    give_all({&scores_mask_, &probabilities_});
    const int query = take(wide(s_.query_width)), key = take(wide(s_.kv_width));
    give(of_scores);
    const int mixed = take(wide(mixed_width()));
    for (const int tensor : {query, key, value}) give(tensor);
    const int part = summed(take(full()));
    make_weight_gradient(matrix(mixed_width()));
    give(mixed);
    give_all({&mixed_});
    int none = -1;
    const int input = with_residual(part, none, gradient_);
    give_all({&norm_});
    move_to(UnitTensors::input_gradient, input);
  }

  double buffer_;
  int norm_ = -1, mixed_ = -1, probabilities_ = -1, left_ = -1, scores_mask_ = -1, context_ = -1, middle_ = -1, mask_ = -1;
  int norm2_ = -1, inner_ = -1, active_ = -1, mask2_ = -1, gradient_ = -1;
};

}  // namespace

bool knows_megatron_2021(const Workload& workload) {
  const workloads::Model& model = workload.model;
  const bool whole_layers = workload.recompute.kind != workloads::RecomputeKind::selective && workload.recompute.kept.empty();
  const bool gpt =
      model.heads > 0 && !model.gated() && !model.moe && !model.mla && !model.qk_norm && workloads::unfused_norm_bytes(workload) == 0;
  const bool attends = workload.attention == workloads::Attention::unfused && workload.fusions.softmax && workload.parallel.cp == 1;
  return gpt && attends && whole_layers && !workload.parallel.sp && workload.optimizer.zero_stage == 0 && workload.fusions.activation &&
         !workload.fusions.cross_entropy && !workload.fusions.whole_logits;
}

UnitTensors megatron_2021_tensors(const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  UnitTensors made;
  Megatron2021Writer writer(workload, workloads::scores_buffer_bytes(workload, habits), made);
  if (unit.kind == UnitKind::embedding) {
    writer.embedding(shares_table(workload));
  } else if (unit.kind == UnitKind::head) {
    writer.head();
  } else {
    writer.layer(unit);
  }
  return made;
}

}  // namespace rehearse::sim
