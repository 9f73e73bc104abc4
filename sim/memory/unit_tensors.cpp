#include "sim/memory/unit_tensors.hpp"

#include "sim/memory/adapted_tensors.hpp"
#include "sim/memory/expert_tensors.hpp"
#include "sim/memory/megatron_2021_tensors.hpp"
#include "sim/memory/nanotron_tensors.hpp"
#include "sim/memory/torch_tensors.hpp"
#include "workloads/fused_loss.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Unit;
using workloads::UnitKind;
using workloads::Workload;

class Writer : private MegatronExperts {
 public:
  Writer(const Workload& workload, const workloads::MemoryHabits& habits, UnitTensors& made, int chunks)
      : MegatronExperts(workload, made, chunks),
        loss_bytes_(habits.loss_bytes),
        fused_(workloads::fuses_loss(workload, habits, s_.element)) {}

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

  // A fused loss writes the logits' gradient over the logits; the product with the gathered input is PyTorch's, with a buffer of its own.
  void head() {
    const int norm = take(states());
    if (spreads()) hold(gathered_input, full());
    hold_workspace(forward_workspace);
    const int left = loss(gather_logits(take(wide(s_.vocab))));
    start_backward();
    const int gradient = casts() ? take(wide(s_.loss_vocab)) : left;
    if (casts()) give(left);
    hold_workspace(backward_workspace);
    const int gathered = take(full());
    const int part = spreads() ? communicated(take(states())) : gathered;
    give(take(table()));  // the placeholder that autograd gets, while the sum is on its way
    if (spreads()) give(communicated(gathered));
    give(gradient);
    take_as(UnitTensors::input_gradient, states());
    give(part);
    give(norm);
    give(UnitTensors::input);
  }

  // What it leaves for backward. Of logits in fp32 it makes no copy but the one that is not in place.
  int loss(int logits) {
    if (fused_) return logits;
    const double exact = tokens() * static_cast<double>(s_.loss_vocab) * statistic_bytes;
    const int copy = casts() ? take(exact) : logits;
    const int probabilities = in_place() ? copy : take(exact);
    if (casts()) give(logits);
    if (!in_place()) give(copy);
    return probabilities;
  }

  void layer(const Unit& unit) {
    experts_ = unit.layer_kind == workloads::LayerKind::experts;
    forward(!unit.recomputed);
    start_backward();
    if (unit.recomputed) {
      forward(true);
      give(UnitTensors::output);
    }
    experts_ ? experts_backward() : mlp_backward();
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

  void forward(bool kept) {
    hold_engine_workspace();
    attention_forward(kept);
    experts_ ? experts_forward(kept) : mlp_forward(kept);
  }

  void mlp_inside() {
    const int gathered = gather();
    inner_ = take(wide(gated()));
    give(gathered);
  }
  void activate() {
    const double beside = beside_activation(w_.fusions.activation_kept);
    silu_ = beside > 0 ? take(wide(s_.ffn) * beside) : -1;
    active_ = take(wide(s_.ffn));
  }

  void mlp_forward(bool kept) {
    norm2_ = take(states());
    mlp_inside();
    if (!kept) give_all({&norm2_});
    activate();
    if (!kept) give_all({&silu_, &inner_});
    const int sum = spread(take(full()));
    if (!kept) give_all({&active_});
    if (kept && drops(Module::mlp)) give_all({&silu_, &inner_, &active_});
    if (kept && drops(Module::mlp_act)) give_all({&silu_, &active_});
    if (kept && drops_norm(w_, true)) give_all({&norm2_});
    take_as(UnitTensors::output, states());
    give(sum);
    mask2_ = dropped_out();
    if (!kept) give_all({&mask_, &mask2_, &middle_});
  }

  void mlp_backward() {
    give_all({&mask2_});
    if (drops_norm(w_, true)) norm2_ = take(states());
    if (drops(Module::mlp)) mlp_inside();
    if (drops(Module::mlp) || drops(Module::mlp_act)) activate();
    const int gathered = gather();
    const int active = take(wide(s_.ffn));
    hold(fc2_placeholder, matrix(s_.ffn));
    give(gathered);
    give_all({&active_});
    const int inner = activation_backward(active, wide(s_.ffn));
    give_all({&silu_, &inner_});
    const int again = gather_beside();
    const int norm = spread_beside(take(full()));
    hold(fc1_placeholder, matrix(gated()));
    give(again);
    give(inner);
    const int middle = take(states());
    give(norm);
    give_all({&norm2_, &middle_});
    meet_residual(middle);
  }

  // The copy of the logits in fp32 becomes probabilities and then their gradient.
  [[nodiscard]] bool in_place() const { return loss_bytes_ > 0 && loss_bytes_ <= s_.element + statistic_bytes; }

  [[nodiscard]] bool casts() const { return !fused_ && s_.element < statistic_bytes; }

  double loss_bytes_;
  bool fused_;
  bool experts_ = false;
  int norm2_ = -1, inner_ = -1, silu_ = -1, active_ = -1, mask2_ = -1;
};

// Of the orders but Megatron-Core's: dense layers as Llama has them.
bool plain(const workloads::Model& model) { return !model.moe && !model.mla && !model.qk_norm; }

// Before experts' activation took the weights of pairs.
bool weighs_outputs(const Workload& workload) { return workload.fusions.kept_outputs > 0 || workload.fusions.kept_copies; }

bool knows_megatron(const Workload& workload, const workloads::MemoryHabits& habits) {
  const workloads::Model& model = workload.model;
  const workloads::Parallel& parallel = workload.parallel;
  const bool exchange = parallel.cp == 1 || (!model.mla && parallel.cp_comm == workloads::ContextComm::all_to_all);
  // Only Megatron-Core and Transformer Engine hand out placeholders.
  return habits.gradient_placeholders && workload.fusions.gradient_accumulation && exchange &&
         !(model.moe && (model.biases || model.clamps_gate || weighs_outputs(workload))) && !workload.recompute.every_second_product() &&
         workload.recompute.kept.empty();
}

// In 8 bits: PyTorch's order of torchao's products, compiled, of which autograd keeps what they read in 16 bits, where a layer is computed
// again but for what it keeps in 16 bits too.
bool knows_products(const Workload& workload, const workloads::Shard& shard, bool torch) {
  const workloads::Recompute& recompute = workload.recompute;
  const bool again = recompute.kind == workloads::RecomputeKind::full || (recompute.every_second_product() && recompute.narrow_too);
  const bool wide = !shard.low_precision() && !workload.precision.param_gather;
  return wide || (torch && workload.fusions.compiled && shard.linear == workloads::DType::fp8 && again && !workload.lora.on());
}

}  // namespace

bool knows_tensors(const Workload& workload, const workloads::MemoryHabits& habits) {
  const workloads::Schedule& schedule = workloads::ScheduleRegistry::get(workload.schedule);
  const workloads::Model& model = workload.model;
  const workloads::Shard shard = workloads::shard_of(workload);
  const bool layers = model.plain_layers() && model.mtp == 0 && !model.post_norms && !model.side_by_side() && !workload.offload_activations;
  const bool head = workload.precision.head.value_or(shard.dense) == shard.dense;
  const bool torch = habits.order == workloads::TensorOrder::torch;
  const bool products = knows_products(workload, shard, torch) && workload.precision.of_experts() == shard.linear && head;
  const bool order = !schedule.splits_backward() && !schedule.mirrors() && !workload.overlap.ep;
  if (workload.recompute.shards_inputs && habits.order != workloads::TensorOrder::megatron_2021) return false;
  if (!layers || !products || !order || workload.precision.activation_input) return false;
  if (workload.optimizer.muon() || (workload.lora.on() && !torch) || workload.fusions.remakes_logits) return false;
  if (!torch && (workload.optimizer.on_cpu || workload.fusions.loss_pieces > 1)) return false;
  const bool core = habits.order == workloads::TensorOrder::megatron_core;
  const bool kept = !workload.fusions.activation && workload.fusions.activation_kept > 0;
  if ((kept || workload.fusions.attention_copied) && !core) return false;
  if (workloads::repeats_kv(workload, shard) && !(torch && model.gated())) return false;  // out of products of their own
  if (habits.order == workloads::TensorOrder::megatron_2021) return knows_megatron_2021(workload);
  if (workload.attention != workloads::Attention::flash) return false;
  if (torch) return plain(model) && (workload.lora.on() ? knows_adapted_tensors(workload, habits) : knows_torch_tensors(workload, habits));
  if (workload.optimizer.zero_stage > 1 || workloads::unfused_norm_bytes(workload) > 0 || (workload.fusions.keeps_gathered && shard.sp))
    return false;
  if (habits.order != workloads::TensorOrder::nanotron) return knows_megatron(workload, habits);
  const bool whole = workload.recompute.kind == workloads::RecomputeKind::none && workload.parallel.cp == 1;
  return plain(model) && whole && model.gated() && !shard.dropout && (workload.parallel.sp || workload.parallel.tp == 1);
}

bool shares_table(const Workload& workload) {
  return workload.model.tied_embeddings && workload.model.vocab > 0 && workloads::ends_meet(workload);
}

namespace {

UnitTensors megatron_core_tensors(const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  UnitTensors made;
  const bool experts = unit.layer_kind == workloads::LayerKind::experts;
  Writer writer(workload, habits, made, experts ? workload.experts.chunks_of(unit.first_layer) : 1);
  if (unit.kind == UnitKind::embedding) {
    writer.embedding();
  } else if (unit.kind == UnitKind::head) {
    writer.head();
  } else {
    writer.layer(unit);
  }
  return made;
}

UnitTensors in_order_of(workloads::TensorOrder order, const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  using workloads::TensorOrder;
  switch (order) {
    case TensorOrder::megatron_2021:
      return megatron_2021_tensors(workload, habits, unit);
    case TensorOrder::nanotron:
      return nanotron_tensors(workload, unit);
    case TensorOrder::torch:
      return workload.lora.on() ? adapted_tensors(workload, habits, unit) : torch_tensors(workload, habits, unit);
    case TensorOrder::megatron_core:
      break;
  }
  return megatron_core_tensors(workload, habits, unit);
}

}  // namespace

UnitTensors tensors_of(const Workload& workload, const workloads::MemoryHabits& habits, const Unit& unit) {
  const auto wide = unit.wide ? std::optional(workloads::of_wide_layers(workload)) : std::nullopt;
  UnitTensors made = in_order_of(habits.order, wide ? *wide : workload, habits, unit);
  made.again = unit.recomputed;
  return made;
}

}  // namespace rehearse::sim
