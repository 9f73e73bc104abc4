#include "sim/memory/unit_tensors.hpp"

#include <utility>

#include "sim/memory/nanotron_tensors.hpp"
#include "sim/memory/tensor_writer.hpp"
#include "sim/memory/torch_tensors.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Unit;
using workloads::UnitKind;
using workloads::Workload;

constexpr double statistic_bytes = 4;

class Writer : private TensorWriter {
 public:
  using TensorWriter::TensorWriter;

  void embedding() {
    const int found = take(full());
    move_to(UnitTensors::output, spread(found));
    const int mask = dropped_out();
    start_backward();
    give(mask);
    const int gathered = gather();
    give(take(table()));  // a dense gradient, added up by a hook
    give(gathered);
    give(UnitTensors::output_gradient);
  }

  // The loss writes the logits' gradient over the logits; the product with the gathered input is PyTorch's, with a buffer of its own.
  void head() {
    const int norm = take(states());
    if (spreads()) hold(gathered_input, full());
    const int logits = gather_logits(take(wide(s_.vocab)));
    const bool fused = w_.fusions.cross_entropy;
    int probabilities = logits;
    if (!fused) {
      const double exact = tokens() * static_cast<double>(s_.loss_vocab) * statistic_bytes;
      const int copy = take(exact);
      probabilities = take(exact);
      give(logits);
      give(copy);
    }
    start_backward();
    const int gradient = fused ? -1 : take(wide(s_.loss_vocab));
    const int gathered = take(full());
    const int part = spreads() ? communicated(take(states())) : gathered;
    give(take(table()));  // the placeholder that autograd gets, while the sum is on its way
    if (spreads()) give(communicated(gathered));
    if (!fused) give(gradient);
    give(probabilities);
    take_as(UnitTensors::input_gradient, states());
    give(part);
    give(norm);
    give(UnitTensors::input);
  }

  void layer(bool recomputed) {
    if (recomputed) {
      layer_forward(false);
      start_backward();
      layer_forward(true);
      give(UnitTensors::output);
    } else {
      layer_forward(true);
      start_backward();
    }
    mlp_backward();
    attention_backward();
    give(UnitTensors::input);
  }

 private:
  // The parts of all ranks and, joined, what the loss reads.
  int gather_logits(int own) {
    if (!s_.gathers_logits()) return own;
    const int parts = communicated(take(wide(s_.loss_vocab)));
    const int joined = take(wide(s_.loss_vocab));
    give(own);
    give(parts);
    return joined;
  }

  // kept: for a backward that follows; otherwise what is read for the last time goes.
  void layer_forward(bool kept) {
    norm_ = take(states());
    attend(kept);
    const int projected = spread(take(full()));
    if (!kept) give(context_);
    middle_ = take(states());
    give(projected);
    mask_ = dropped_out();
    norm2_ = take(states());
    const int gathered = gather();
    inner_ = take(wide(gated()));
    give(gathered);
    if (!kept) give(norm2_);
    silu_ = apart() ? take(wide(s_.ffn)) : -1;
    active_ = take(wide(s_.ffn));
    if (!kept) {
      give(silu_);
      give(inner_);
    }
    const int sum = spread(take(full()));
    if (!kept) give(active_);
    take_as(UnitTensors::output, states());
    give(sum);
    mask2_ = dropped_out();
    if (kept) return;
    give(mask_);
    give(mask2_);
    give(middle_);
  }

  int dropped_out() { return s_.dropout ? take(states() / s_.element) : -1; }

  // Queries and keys are copied out of the product and rotated, values copied.
  void attend(bool kept) {
    const int gathered = gather();
    const int mixed = take(wide(s_.query_width + 2 * s_.kv_width));
    give(gathered);
    if (!kept) give(norm_);
    const int copied = take(wide(s_.query_width));
    query_ = take(wide(s_.query_width));
    give(copied);
    key_ = take(wide(s_.kv_width));
    value_ = take(wide(s_.kv_width));
    give(mixed);
    query_ = exchanged(query_, wide(s_.query_width));
    key_ = exchanged(key_, wide(s_.kv_width));
    value_ = exchanged(value_, wide(s_.kv_width));
    context_ = take(wide(s_.query_width));
    statistics_ = take(tokens() * static_cast<double>(s_.heads) * statistic_bytes);
    // Both stay: attention keeps its own output, the projection what the exchange made of it.
    unexchanged_ = exchanges() ? std::exchange(context_, communicated(take(wide(s_.query_width)))) : -1;
    if (kept) return;
    for (const int tensor : {query_, key_, value_, statistics_, unexchanged_}) give(tensor);
  }

  void mlp_backward() {
    give(mask2_);
    const int gathered = gather();
    const int active = take(wide(s_.ffn));
    hold(fc2_placeholder, matrix(s_.ffn));
    give(gathered);
    give(active_);
    const int inner = activation_backward(active);
    give(silu_);
    give(inner_);
    const int again = gather();
    const int norm = spread(take(full()));
    hold(fc1_placeholder, matrix(gated()));
    give(again);
    give(inner);
    const int middle = take(states());
    give(norm);
    give(norm2_);
    give(middle_);
    gradient_ = take(states());
    give(middle);
    give(UnitTensors::output_gradient);
  }

  // A gated activation of several operators keeps what the gate's half became, and joins the gradients of both.
  [[nodiscard]] bool apart() const { return w_.model.gated() && !w_.fusions.activation; }
  int activation_backward(int active) {
    const int silu = apart() ? take(wide(s_.ffn)) : -1;
    const int up = apart() ? take(wide(s_.ffn)) : -1;
    const int inner = take(wide(gated()));
    for (const int tensor : {active, silu, up}) give(tensor);
    return inner;
  }

  void attention_backward() {
    give(mask_);
    const int gathered = gather();
    int context = take(wide(s_.query_width));
    hold(projection_placeholder, matrix(s_.query_width));
    give(gathered);
    context = exchanged(context, wide(s_.query_width));
    int query = take(wide(s_.query_width)), key = take(wide(s_.kv_width)), value = take(wide(s_.kv_width));
    give(context);
    query = exchanged(query, wide(s_.query_width));
    key = exchanged(key, wide(s_.kv_width));
    value = exchanged(value, wide(s_.kv_width));
    for (const int tensor : {query_, key_, value_, context_, statistics_, unexchanged_}) give(tensor);
    const int mixed = take(wide(s_.query_width + 2 * s_.kv_width));
    for (const int tensor : {query, key, value}) give(tensor);
    const int again = gather();
    const int norm = spread(take(full()));
    hold(qkv_placeholder, matrix(s_.query_width + 2 * s_.kv_width));
    give(again);
    give(mixed);
    const int inner = take(states());
    give(norm);
    take_as(UnitTensors::input_gradient, states());
    give(inner);
    give(gradient_);
    give(norm_);
  }

  int norm_ = -1, query_ = -1, key_ = -1, value_ = -1, context_ = -1, unexchanged_ = -1, statistics_ = -1, middle_ = -1, norm2_ = -1;
  int inner_ = -1, silu_ = -1, active_ = -1, mask_ = -1, mask2_ = -1, gradient_ = -1;
};

}  // namespace

bool knows_tensors(const Workload& workload, const workloads::MemoryHabits& habits) {
  const workloads::Schedule& schedule = workloads::ScheduleRegistry::get(workload.schedule);
  const workloads::Model& model = workload.model;
  const workloads::Shard shard = workloads::shard_of(workload);
  const bool plain = !model.moe && !model.mla && model.mtp == 0 && !model.qk_norm && !model.post_norms && !workload.offload_activations;
  const bool products = workload.attention == workloads::Attention::flash && !shard.low_precision();
  const bool order = !schedule.splits_backward() && !schedule.mirrors() && !workload.overlap.ep;
  if (!plain || !products || !order || workload.optimizer.on_cpu) return false;
  if (workload.optimizer.muon() || workload.fusions.loss_pieces > 1 || workload.precision.param_gather) return false;
  if (habits.order == workloads::TensorOrder::torch) return knows_torch_tensors(workload, habits);
  if (workload.optimizer.zero_stage > 1 || workloads::unfused_norm_bytes(workload) > 0 || (workload.fusions.keeps_gathered && shard.sp))
    return false;
  if (habits.order == workloads::TensorOrder::nanotron) {
    const bool whole = workload.recompute.kind == workloads::RecomputeKind::none && workload.parallel.cp == 1;
    return whole && model.gated() && !shard.dropout && (workload.parallel.sp || workload.parallel.tp == 1);
  }
  const bool exchange = workload.parallel.cp == 1 || workload.parallel.cp_comm == workloads::ContextComm::all_to_all;
  // Only Megatron-Core and Transformer Engine hand out placeholders.
  return habits.gradient_placeholders && workload.fusions.gradient_accumulation && exchange &&
         workload.recompute.kind != workloads::RecomputeKind::selective && workload.recompute.kept.empty();
}

UnitTensors tensors_of(const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  if (habits.order == workloads::TensorOrder::nanotron) return nanotron_tensors(workload, unit);
  if (habits.order == workloads::TensorOrder::torch) return torch_tensors(workload, habits, unit);
  UnitTensors made;
  Writer writer(workload, made);
  if (unit.kind == UnitKind::embedding) {
    writer.embedding();
  } else if (unit.kind == UnitKind::head) {
    writer.head();
  } else {
    writer.layer(unit.recomputed);
  }
  return made;
}

std::vector<double> parameters_of(const Workload& workload, const Unit& unit) {
  const workloads::Shard s = workloads::shard_of(workload);
  const auto hidden = static_cast<double>(s.hidden);
  const auto query = static_cast<double>(s.query_width), key = static_cast<double>(s.kv_width), ffn = static_cast<double>(s.ffn);
  const bool gated = workload.model.gated(), apart = gated && workload.fusions.separate_qkv && workload.fusions.separate_gate;
  std::vector<double> sizes;
  if (unit.kind == UnitKind::layer && apart) {
    sizes = {hidden * query, hidden * key, hidden * key, hidden * query, hidden * ffn, hidden * ffn, hidden * ffn, hidden, hidden};
  } else if (unit.kind == UnitKind::layer) {
    sizes = {hidden * query, hidden, hidden * (query + 2 * key), hidden, hidden * ffn * (gated ? 2 : 1), hidden * ffn};
  } else if (unit.program->parameters >= hidden * static_cast<double>(s.vocab)) {  // not where the other end has it
    sizes = {hidden * static_cast<double>(s.vocab)};
  }
  double rest = unit.program->parameters;
  for (const double size : sizes) rest -= size;
  if (rest >= 1) sizes.push_back(rest);  // biases, position embeddings
  return sizes;
}

}  // namespace rehearse::sim
