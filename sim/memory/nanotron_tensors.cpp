#include "sim/memory/nanotron_tensors.hpp"

#include "sim/memory/tensor_writer.hpp"

namespace rehearse::sim {
namespace {

using workloads::Unit;
using workloads::UnitKind;

constexpr double fp32_bytes = 4;

class NanotronWriter : private TensorWriter {
 public:
  using TensorWriter::TensorWriter;

  // Rows of words that other ranks have are zeroed in a copy.
  void embedding(bool shared) {
    const int found = take(full());
    const int masked = s_.tp > 1 ? take(full()) : found;
    if (masked != found) give(found);
    move_to(UnitTensors::output, reduced(masked));
    start_backward();
    const int gathered = spreads() ? communicated(take(full())) : -1;
    const int unmasked = s_.tp > 1 ? take(full()) : -1;
    give(gathered);
    if (shared) {
      give(take(table()));  // added to the head's
    } else {
      make_gradient(table());
    }
    give(unmasked);
    give(UnitTensors::output_gradient);
  }

  // Logits, their copy in fp32, and that copy less its largest: the last becomes probabilities and then the gradient in place.
  void head() {
    const int norm = communicated(take(states()));
    buffer(gathered_input);
    const int logits = take(wide(s_.vocab));
    const int copy = take(tokens() * static_cast<double>(s_.vocab) * fp32_bytes);
    give(logits);
    const int probabilities = take(tokens() * static_cast<double>(s_.vocab) * fp32_bytes);
    give(copy);
    start_backward();
    const int gradient = take(wide(s_.vocab));
    give(probabilities);
    const int part = column_backward(s_.vocab);
    give(gradient);
    give(norm);
    take_as(UnitTensors::input_gradient, states());
    give(part);
    give(UnitTensors::input);
  }

  void layer() {
    attention_forward();
    mlp_forward();
    start_backward();
    mlp_backward();
    attention_backward();
    give(UnitTensors::input);
  }

 private:
  void buffer(Held which) {
    if (spreads()) hold(which, full());
  }
  // A sum over tensor-parallel ranks. Up to PyTorch 2.1, which its launcher names, tensors of calls that the stream waits for are marked as
  // NCCL's as well.
  int reduced(int tensor) {
    if (!spreads()) return tensor;
    const int part = communicated(take(states()));
    give(communicated(tensor));
    return part;
  }
  // Products have positions before sequences, flash attention the other way round: with one sequence there is nothing to copy.
  int turned() { return w_.batch.micro > 1 ? take(wide(s_.query_width)) : -1; }
  [[nodiscard]] std::int64_t mixed_width() const { return s_.query_width + 2 * s_.kv_width; }

  // Queries, keys and values are made contiguous together; keys and values then side by side, keys rotated in place, queries into a copy.
  // Reserved memory asks for two tensors of the hidden states' size more in each layer than the source is seen to keep, whatever the model,
  // the stages and the micro-batch (docs/memory.md). The joined keys and values have their size, and stand for them.
  void attention_forward() {
    norm_ = communicated(take(states()));
    buffer(gathered_input);
    const int product = take(wide(mixed_width()));
    const int contiguous = take(wide(mixed_width()));
    joined_ = take(wide(2 * s_.kv_width));
    pairs_ = take(wide(2 * s_.kv_width));
    query_ = take(wide(s_.query_width));
    give(contiguous);
    context_ = take(wide(s_.query_width));
    statistics_ = take(tokens() * static_cast<double>(s_.heads) * fp32_bytes);
    const int by_position = turned();
    const int sum = take(full());
    give(by_position);
    attended_ = reduced(sum);
    give(product);
  }

  void mlp_forward() {
    middle_ = take(states());
    norm2_ = communicated(take(states()));
    buffer(gathered_input);
    both_ = take(wide(gated()));
    active_ = take(wide(s_.ffn));
    product_ = take(wide(s_.ffn));
    const int sum = reduced(take(full()));
    take_as(UnitTensors::output, states());
    give(sum);
    give(attended_);  // the layer's dictionary of outputs has it to the end
  }

  // The input's gradient by a reduction beside the product for the weight's.
  int column_backward(std::int64_t width) {
    const int whole = take(full());
    const int part = spreads() ? communicated(take(states())) : whole;
    make_gradient(matrix(width));
    if (part != whole) give(communicated(whole));
    return part;
  }

  void mlp_backward() {
    buffer(gathered_gradient);
    const int gradient = take(wide(s_.ffn));
    make_gradient(matrix(s_.ffn));
    give(product_);
    const int active = take(wide(s_.ffn)), up = take(wide(s_.ffn));
    give(gradient);
    give(active_);
    const int gate = take(wide(s_.ffn));
    give(active);
    give(both_);
    const int both = take(wide(gated()));
    give(gate);
    give(up);
    const int part = column_backward(gated());
    give(both);
    give(norm2_);
    const int inner = take(states());
    give(part);
    give(middle_);
    gradient_ = communicated(take(states()));
    give(inner);
    give(UnitTensors::output_gradient);
  }

  void attention_backward() {
    buffer(gathered_gradient);
    const int by_position = take(wide(s_.query_width));
    const int turned_context = turned();
    make_gradient(matrix(s_.query_width));
    give(turned_context);
    const int turned_back = turned();
    const int context = turned_back < 0 ? by_position : turned_back;
    if (turned_back >= 0) give(by_position);
    const int query = take(wide(s_.query_width)), key = take(wide(s_.kv_width)), value = take(wide(s_.kv_width));
    const int statistics = take(tokens() * static_cast<double>(s_.heads) * fp32_bytes);
    give(take(2 * wide(s_.query_width)));  // flash attention adds up queries' gradients in fp32
    for (const int tensor : {statistics, context, context_, query_, statistics_}) give(tensor);
    const int pairs = take(wide(2 * s_.kv_width));
    for (const int tensor : {key, value, pairs_, joined_}) give(tensor);
    const int rotated = take(wide(s_.query_width));
    give(query);
    const int mixed = take(wide(mixed_width()));
    give(pairs);
    give(rotated);
    const int contiguous = take(wide(mixed_width()));
    const int part = column_backward(mixed_width());
    for (const int tensor : {contiguous, mixed, norm_}) give(tensor);
    const int inner = take(states());
    give(part);
    take_as(UnitTensors::input_gradient, states());
    communicated(UnitTensors::input_gradient);
    give(inner);
    give(gradient_);
  }

  int norm_ = -1, joined_ = -1, pairs_ = -1, query_ = -1, context_ = -1, statistics_ = -1, attended_ = -1, middle_ = -1, norm2_ = -1;
  int both_ = -1, active_ = -1, product_ = -1, gradient_ = -1;
};

}  // namespace

UnitTensors nanotron_tensors(const workloads::Workload& workload, const Unit& unit) {
  UnitTensors made;
  NanotronWriter writer(workload, made);
  if (unit.kind == UnitKind::embedding) {
    writer.embedding(shares_table(workload));
  } else if (unit.kind == UnitKind::head) {
    writer.head();
  } else {
    writer.layer();
  }
  return made;
}

}  // namespace rehearse::sim
