#include "workloads/unit_memory.hpp"

#include <algorithm>

#include "workloads/expert_layer.hpp"
#include "workloads/frozen_weights.hpp"
#include "workloads/fused_loss.hpp"
#include "workloads/mixer.hpp"
#include "workloads/operators/adapters.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/saved_weights.hpp"
#include "workloads/whole_gradients.hpp"

namespace rehearse::workloads {

bool writes_over_halves(const Workload& workload, const MemoryHabits& habits) {
  return (habits.activation_in_place || workload.fusions.compiled) && workload.model.gated() && workload.fusions.activation;
}

namespace {

constexpr double fp32 = 4;
constexpr double mask_byte = 1;

// Sizes in bytes of the tensors that units work on.
class Sizes {
 public:
  Sizes(const Workload& workload, const MemoryHabits& habits)
      : workload_(workload), habits_(habits), shard_(shard_of(workload)), weight_(product_weight_bytes(workload)) {}

  [[nodiscard]] UnitMemory layers(const Unit& unit) const {
    const bool recomputed = unit.recomputed;
    const LayerKind kind = unit.layer_kind;
    const auto wide = unit.wide ? std::optional(of_wide_layers(workload_)) : std::nullopt;
    const Workload& own = wide ? *wide : workload_;
    const double kept = layer_activation_bytes(own, recomputed, kind, unit.reach);
    Workload nothing_dropped = own;
    nothing_dropped.recompute = {};
    nothing_dropped.precision.activation_input.reset();
    const double dropped = layer_activation_bytes(nothing_dropped, false, kind, unit.reach) - kept;
    UnitMemory memory;
    // The copies of its weights that autocast makes are kept with the products that read them.
    const double copies = autocasts(workload_) ? unit.program->parameters * weight_ : 0;
    const bool computed_again = recomputed || workload_.recompute.every_second_product();
    const double saved = saved_beside(workload_, habits_, shard_, kind, recomputed, unit.program->parameters * weight_);
    memory.activations = kept + held_up() + saved + (computed_again ? 0 : copies);
    const bool planned = habits_.planned && recomputed;
    memory.forward_temporary = (planned ? std::min(dropped, planned_tensors(unit)) : dropped) + (computed_again ? copies : 0);
    memory.backward_temporary = (planned ? planned_tensors(unit) : dropped + layer_gradients(unit)) + (computed_again ? copies : 0);
    const double short_side = workload_.lora.on() ? workload_.lora.rank : static_cast<double>(shard_.hidden);
    if (workload_.lora.on() && workload_.lora.nf4) {  // the matrix at hand in 16 bits
      const double matrix = static_cast<double>(shard_.hidden) * largest_width(unit) * shard_.element;
      memory.forward_temporary += matrix;
      memory.backward_temporary += matrix;
    }
    memory.weight_temporary = accumulates() ? 0 : short_side * largest_width(unit) * weight_;
    memory.gone_before_gradients = made_in_turn(unit, memory);
    memory.forward_communication = gathered_states() + context_buffers(unit);
    const double with_gradients = workload_.parallel.cp_comm == ContextComm::all_to_all ? 1 : 2;
    memory.backward_communication = (shard_.sp ? 2 : 1) * gathered_states() + with_gradients * context_buffers(unit);
    if (unit.kind == UnitKind::prediction) {  // joined norms of the hidden states and of the embedding
      memory.activations += 4 * states();
      memory.backward_temporary += 4 * states();
    }
    if (kind == LayerKind::experts) add_experts(own, unit, memory);
    if (holds_inputs(recomputed)) {  // the gradient of this one's output is the next one's
      memory.left = 2 * states();
      memory.backward_temporary -= states();
    }
    return memory;
  }

  // Kept: the mask of the dropout; the output is the first layer's input. Backward makes a dense gradient of the table, in its own type.
  // Frozen it has no backward.
  [[nodiscard]] UnitMemory embedding() const {
    UnitMemory memory;
    memory.forward_communication = gathered_states();
    if (workload_.lora.on()) return memory;
    memory.activations = shard_.dropout ? spread_elements() * mask_byte : 0;
    memory.backward_temporary = states();
    memory.weight_temporary = own_gradient_stays() ? 0 : table() * (autocasts(workload_) ? fp32 / weight_ : 1);
    memory.gone_before_gradients = memory.weight_temporary;  // it is itself what replicas reduce
    memory.reduced_last = true;
    memory.shard_counted = makes_gradients_anew(workload_, habits_);
    memory.backward_communication = shard_.sp ? gathered_states() : 0;
    return memory;
  }

  // Kept: inputs of the final norm and of the logits, and per logit the gradient, which a fused loss writes over the logit, or the
  // probability in fp32. Not fused, logits and a copy in fp32 live until the loss is known, and their gradient is cast; not of fp32 ones.
  [[nodiscard]] UnitMemory head() const {
    const double logits = static_cast<double>(shard_.tokens * shard_.loss_vocab);
    const bool fused = fuses_loss(workload_, habits_, shard_.element);
    if (workload_.fusions.loss_pieces > 1) return head_in_pieces(logits / workload_.fusions.loss_pieces, fused);
    const double multiplied = bytes_of(workload_.precision.head.value_or(shard_.dense)) / shard_.element;
    const double input = workload_.lora.on() && !remakes() ? 0 : multiplied;  // which the gradient of the table reads, or logits once more
    UnitMemory memory;
    memory.left = habits_.outputs_kept ? logits * fp32 : 0;
    memory.activations = memory.left + norm_input() + (autocasts(workload_) ? table() : 0) +
                         spread_elements() * unfused_norm_bytes(workload_) +
                         (shard_.sp && workload_.fusions.keeps_gathered ? gathered_states() : states()) * input;
    const double of_loss = logits * (fused ? shard_.element : fp32);
    const bool casts = !fused && shard_.element < fp32;
    memory.forward_temporary = fused ? 0 : logits * (shard_.element + (casts ? fp32 : 0));
    memory.backward_temporary = 2 * states() + (casts ? logits * shard_.element : 0);
    if (habits_.loss_bytes > 0) {
      memory.forward_temporary = 0;
      memory.backward_temporary = 2 * states() + std::max(0.0, logits * habits_.loss_bytes - of_loss);
    }
    (remakes() ? memory.forward_temporary : memory.activations) += of_loss;
    if (remakes()) memory.backward_temporary += of_loss;
    if (!workload_.lora.on() && (habits_.gradient_placeholders || !accumulates())) memory.weight_temporary = table();
    // When the product makes the gradient of the table, of the loss's tensors only the gradient of the logits is left.
    // When it is reduced none is: the last norm's backward comes between.
    const double most = habits_.loss_bytes > 0 ? habits_.loss_bytes : casts ? fp32 + shard_.element : shard_.element;
    memory.weight_temporary = std::max(0.0, memory.weight_temporary - logits * std::max(0.0, most - shard_.element));
    if (habits_.gradients_freed && habits_.loss_bytes > 0)
      memory.gone_before_gradients = logits * std::max(habits_.loss_bytes, shard_.element) + memory.weight_temporary;
    // Gathered logits lie in parts before they are joined.
    memory.forward_communication = (shard_.sp ? gathered_states() : 0) + (shard_.gathers_logits() ? logits * shard_.element : 0);
    memory.backward_communication = (shard_.sp ? 2 : 1) * gathered_states();
    return memory;
  }

  // Forward makes the gradients of the logits' input and of the table, which wait for backward; all else of the loss is of one piece. Where
  // logits are computed again, or pieces are apart, backward makes them, and the input waits; of pieces apart all logits and casts do too.
  [[nodiscard]] UnitMemory head_in_pieces(double logits, bool fused) const {
    const bool apart = habits_.pieces_apart, later = remakes() || apart;
    const double cast = autocasts(workload_) ? table() : 0;
    UnitMemory memory;
    memory.activations = norm_input() + spread_elements() * unfused_norm_bytes(workload_) + states() +
                         (workload_.lora.on() || later ? 0 : table()) +
                         (apart ? workload_.fusions.loss_pieces * (cast + logits * shard_.element) : 0);
    const double by_fusion = fused ? shard_.element : 2 * (shard_.element + fp32);
    const double at_work = apart ? logits * shard_.element : cast + logits * (habits_.loss_bytes > 0 ? habits_.loss_bytes : by_fusion);
    memory.forward_temporary = at_work + (later ? 0 : states());
    memory.backward_temporary = states() + (later ? at_work : 0);
    const bool made_here = later && !workload_.lora.on() && (habits_.gradient_placeholders || !accumulates());
    if (made_here) memory.weight_temporary = table() + (apart ? cast * fp32 / weight_ : 0);
    memory.forward_communication = (shard_.sp ? gathered_states() : 0) + (shard_.gathers_logits() ? logits * shard_.element : 0);
    memory.backward_communication = (shard_.sp ? 2 : 1) * gathered_states();
    return memory;
  }

  // What of a unit's gradients waits for the end of the backward.
  [[nodiscard]] double added_later(const Unit& unit) const {
    const bool of_root = in_root(unit) && unit.exchanged.all == 0;  // reduced with the embedding's
    return habits_.added_after_backward || of_root ? parameters_of(*unit.program).trained() * weight_ : 0;
  }

  // Autograd's gradient of the embedding is the one that the update reads; that of a table which is the head's too is added to the head's.
  [[nodiscard]] bool own_gradient_stays() const {
    const bool added = workload_.model.tied_embeddings && ends_meet(workload_);
    return workload_.optimizer.zero_stage == 0 && !added && makes_gradients_anew(workload_, habits_);
  }

  [[nodiscard]] bool in_root(const Unit& unit) const {
    return workload_.optimizer.root && (unit.kind == UnitKind::embedding || unit.kind == UnitKind::head);
  }

  // Of the gradients that autograd makes of a layer's weights, matrix by matrix, those that lie where tensors of the layer have gone since.
  // What lies beside all of these is the input of the reduction before, which FSDP2 keeps until the next one (ReduceScatterState).
  [[nodiscard]] double made_in_turn(const Unit& unit, const UnitMemory& memory) const {
    if (workload_.optimizer.zero_stage < 3 || !workload_.optimizer.copies || habits_.live_parameters > 0) return 0;
    const double made = parameters_of(*unit.program).trained() * bytes_of(workload_.trained_weights());
    return std::min(made, memory.activations + memory.backward_temporary + memory.weight_temporary);
  }

  // One of each shape: all experts share theirs.
  [[nodiscard]] double layer_matrices() const {
    double widths = attention_matrices() + mixer_matrices();
    if (workload_.model.moe) {
      const MoeSpec& moe = *workload_.model.moe;
      const double shared = static_cast<double>(moe.shared) / static_cast<double>(shard_.tp), own = routed_share() / workload_.parallel.etp;
      widths += (own + (shared == own && !workload_.model.narrows() ? 0 : shared)) * moe.ffn * (gates() + 1) + 2 * moe.latent;
    }
    if (workload_.model.any_mlp()) widths += ffn_width() + static_cast<double>(shard_.ffn);
    return static_cast<double>(shard_.hidden) * widths * weight_;
  }

 private:
  // Over the hidden width.
  [[nodiscard]] double attention_matrices() const {
    if (shard_.heads == 0) return 0;
    if (!workload_.model.mla)
      return static_cast<double>((workload_.model.attention_gate ? 3 : 2) * shard_.query_width + 2 * shard_.kv_width);
    const MlaSpec& mla = *workload_.model.mla;
    const auto heads = static_cast<double>(shard_.heads), hidden = static_cast<double>(shard_.hidden);
    const double queries = heads * (mla.qk_nope + mla.qk_rope);
    const double up = (mla.q_lora * queries + mla.kv_lora * heads * (mla.qk_nope + mla.v)) / hidden;
    return up + (mla.q_lora > 0 ? mla.q_lora : queries) + mla.kv_lora + mla.qk_rope + heads * mla.v;
  }
  [[nodiscard]] double mixer_columns_here() const {
    return static_cast<double>(mixer_columns(*workload_.model.mixer)) / static_cast<double>(shard_.tp);
  }
  [[nodiscard]] double mixer_matrices() const {
    if (!workload_.model.mixer) return 0;
    const MixerSpec& mixer = *workload_.model.mixer;
    return mixer_columns_here() + static_cast<double>(mixer.heads) * mixer.head_dim / static_cast<double>(shard_.tp);
  }
  [[nodiscard]] static bool attends(const Unit& unit) { return unit.reach == Reach::sequence || unit.reach == Reach::window; }
  // Of the last norm, beside what it keeps as several operators.
  [[nodiscard]] double norm_input() const { return spread_elements() * (autocasts(workload_) ? fp32 : normed_bytes(workload_, shard_)); }
  [[nodiscard]] bool holds_inputs(bool recomputed) const {
    return recomputed && workload_.lora.on() && holds_frozen_inputs(workload_, habits_);
  }
  [[nodiscard]] bool remakes() const { return workload_.fusions.remakes_logits; }
  [[nodiscard]] bool accumulates() const { return workload_.fusions.gradient_accumulation; }
  [[nodiscard]] double gates() const { return workload_.model.gated() ? 2 : 1; }
  [[nodiscard]] double ffn_width() const { return static_cast<double>(shard_.ffn) * gates(); }
  [[nodiscard]] double largest_width(const Unit& unit) const {
    if (unit.layer_kind == LayerKind::none)
      return unit.reach == Reach::state ? mixer_columns_here() : static_cast<double>(shard_.query_width + 2 * shard_.kv_width);
    const double mixer = unit.reach == Reach::state ? mixer_columns_here() : 0;
    if (unit.layer_kind != LayerKind::experts) return std::max(mixer, ffn_width());
    const MoeSpec& moe = *workload_.model.moe;
    return std::max({mixer, moe.ffn * gates() * routed_share() / workload_.parallel.etp, static_cast<double>(moe.latent)});
  }
  [[nodiscard]] double routed_share() const { return workload_.model.routed_width() / static_cast<double>(shard_.hidden); }

  // Copies of a rank's own tokens on their way to experts and back, and per pair received: the experts' output and what comes of it
  // unsorted at the end of forward. In chunks the one at hand and the neighbours that travel beside it, unsorted, are there, the one at
  // hand with all that it recomputes. own: the workload as the unit has it.
  void add_experts(const Workload& own, const Unit& unit, UnitMemory& memory) const {
    const MoeSpec& moe = *workload_.model.moe;
    const double chunks = workload_.experts.chunks_of(unit.first_layer);
    const double at_hand = 1 / chunks, travelling = chunks > 1 ? 1 / chunks : 0;
    const double state = workload_.model.routed_width() * shard_.element;
    Workload nothing_dropped = own;
    nothing_dropped.experts.chunk_recompute = false;
    nothing_dropped.recompute = {};
    nothing_dropped.precision.activation_input.reset();
    const PairTensors made = pair_tensors(nothing_dropped);
    memory.received_activations = received_activation_bytes(own, unit.recomputed);
    // Dropped tensors are there again while the layer, or where chunks bring back their own the chunk, is at work.
    const bool by_chunk = workload_.experts.chunk_recompute || workload_.recompute.drops(RecomputeModule::moe_act);
    const bool planned = habits_.planned && unit.recomputed;
    const double dropped = planned ? 0 : (made.all() - memory.received_activations) * (by_chunk ? at_hand : 1);
    const double unsorted = state * copies_per_pair(workload_);
    memory.received_forward = dropped + (state + unsorted) * at_hand + 2 * unsorted * travelling;
    const double again = workload_.experts.chunk_recompute ? state * travelling : 0;  // the next chunk's tokens, dispatched again
    const double matrices = experts_gradients_stay() ? parameters_of(*unit.program).experts * weight_ : 0;
    if (matrices > 0) memory.weight_temporary = 0;  // counted with the moments
    memory.received_backward = moments_of_experts(planned ? PairTensors{} : made, state, unsorted, matrices);
    for (UnitMemory::PairMoment& one : memory.received_backward)
      one.per_pair = dropped + again + one.per_pair * at_hand + 2 * unsorted * travelling;
    if (workload_.experts.dispatcher == Dispatcher::alltoall && workload_.parallel.ep > 1) {
      memory.forward_communication += moe.top_k * states() * routed_share();
      memory.backward_communication += moe.top_k * states() * routed_share();
    }
  }
  // Autograd's gradients of the experts' matrices are what the update reads.
  [[nodiscard]] bool experts_gradients_stay() const {
    return workload_.optimizer.zero_stage == 0 && !workload_.lora.on() && !accumulates() && makes_gradients_anew(workload_, habits_);
  }

  // In backward, beside what forward left, `made`, less what is given back by then: unsorted and sorted gradients of the output, or it with
  // both of its factors' where the pairs' weights are multiplied with it, by operators of autograd; behind the last product gradients
  // around the activation, of these operators without that product's input and output; where the weights are multiplied with the activation
  // it is there once more (Megatron's weighted_swiglu_back), beside all that forward made: by single layers on one H100 (moe-layer-h100)
  // that product's input, too, is there still. Around the first product its input alone is left of what forward made.
  [[nodiscard]] std::array<UnitMemory::PairMoment, 3> moments_of_experts(const PairTensors& made, double state, double unsorted,
                                                                         double matrices) const {
    const double ffn = static_cast<double>(workload_.model.moe->ffn) / workload_.parallel.etp * shard_.element;
    const bool weighs_outputs = made.outputs > 0;
    const double around = weighs_outputs ? (gates() + 1) * ffn - made.outputs - made.active : (gates() + 2) * ffn;
    return {{{std::max(state + unsorted, weighs_outputs ? 3 * state : 0), 0},
             {around, matrices / (gates() + 1)},
             {state + gates() * ffn - (made.all() - made.input), matrices}}};
  }

  [[nodiscard]] double spread_elements() const { return static_cast<double>(shard_.spread_tokens * shard_.hidden); }
  [[nodiscard]] double states() const { return spread_elements() * shard_.element; }
  [[nodiscard]] double table() const { return static_cast<double>(shard_.vocab * shard_.hidden) * weight_; }

  // Late blocks of gathers in which activations of another micro-batch found room: of one stage none is in flight beside the one at hand.
  [[nodiscard]] double held_up() const {
    const bool several = workload_.microbatches() > 1 && workload_.parallel.pp > 1;
    return several ? habits_.kept_gathers * gathered_states() : 0;
  }
  // The hidden states of all tokens: gathered under sequence parallelism, otherwise the buffer of the all-reduce.
  [[nodiscard]] double gathered_states() const {
    return shard_.tp > 1 ? static_cast<double>(shard_.tokens * shard_.hidden) * shard_.element : 0;
  }

  // Keys and values. Ring: the block at hand and the one on its way; all-gather: of the whole sequence. All-to-all: what arrives of
  // queries, keys and values (in backward of their gradients).
  [[nodiscard]] double context_buffers(const Unit& unit) const {
    if (shard_.cp == 1) return 0;
    if (unit.reach == Reach::state) return static_cast<double>(shard_.tokens) * mixer_columns_here() * shard_.element;
    if (unit.reach == Reach::none) return 0;
    const double keys_and_values = 2 * static_cast<double>(shard_.tokens * shard_.kv_width) * shard_.element;
    switch (workload_.parallel.cp_comm) {
      case ContextComm::all_gather:
        return static_cast<double>(shard_.cp) * keys_and_values;
      case ContextComm::all_to_all:
        return keys_and_values + static_cast<double>(shard_.tokens * shard_.query_width) * shard_.element;
      case ContextComm::ring:
        break;
    }
    return 2 * keys_and_values;
  }

  // Gradients of the layer's output and input, and of what lies inside the larger half: the MLP's two intermediate tensors, or
  // attention's context, queries, keys and values (unfused: and scores and probabilities, of which dropout's output takes one along).
  [[nodiscard]] double layer_gradients(const Unit& unit) const {
    const LayerKind kind = unit.layer_kind;
    const auto tokens = static_cast<double>(shard_.tokens);
    const bool in_place = writes_over_halves(workload_, habits_);
    double mlp = kind == LayerKind::none ? 0 : tokens * ((in_place ? 0 : ffn_width()) + static_cast<double>(shard_.ffn));
    if (kind == LayerKind::experts) {
      const MoeSpec& moe = *workload_.model.moe;
      mlp = tokens * static_cast<double>(moe.shared) * moe.ffn / static_cast<double>(shard_.tp) * (gates() + 1);
    }
    double attention = tokens * static_cast<double>(2 * shard_.query_width + 2 * shard_.kv_width);
    if (workload_.attention == Attention::unfused)
      attention += (shard_.dropout ? 1 : 2) * tokens * static_cast<double>(shard_.heads * shard_.sequence);
    return 2 * states() + std::max({mlp * shard_.element, attends(unit) ? attention * shard_.element : 0, mixer_gradients(unit)});
  }

  [[nodiscard]] double mixer_gradients(const Unit& unit) const {
    if (unit.reach != Reach::state) return 0;
    const MixerShare share = mixer_share(*workload_.model.mixer, shard_);
    return static_cast<double>(share.tokens) * MixerRegistry::get(workload_.model.mixer->kind).backward_bytes(share);
  }

  // Of a recomputed layer whose compiler plans its buffers, forward and backward: hidden states and their gradients, and the larger half's
  // tensors at hand, of an MLP gate, up and product or their gradients, of attention its inputs and output with their gradients.
  [[nodiscard]] double planned_tensors(const Unit& unit) const {
    const auto tokens = static_cast<double>(shard_.tokens);
    const double attention = attends(unit) ? 2 * tokens * static_cast<double>(2 * shard_.query_width + 2 * shard_.kv_width) : 0;
    return 2 * states() + std::max(layer_gradients(unit), 2 * states() + attention * shard_.element);
  }

  const Workload& workload_;
  const MemoryHabits& habits_;
  Shard shard_;
  double weight_;
};

UnitMemory work_of(const Sizes& sizes, const Unit& unit) {
  if (unit.kind == UnitKind::embedding) return sizes.embedding();
  return unit.kind == UnitKind::head ? sizes.head() : sizes.layers(unit);
}

UnitMemory memory_of(const Sizes& sizes, const Unit& unit) {
  UnitMemory memory = work_of(sizes, unit);
  memory.in_root = sizes.in_root(unit);
  memory.gradients = sizes.added_later(unit);
  return memory;
}

}  // namespace

bool holds_frozen_inputs(const Workload& workload, const MemoryHabits& habits) {
  return habits.frozen_inputs && workload.optimizer.zero_stage >= 2;
}

double placeholder_bytes(const Workload& workload, const MemoryHabits& habits) {
  if (workload.lora.on()) return 0;  // those of adapters are nothing beside the layers' matrices
  return habits.gradient_placeholders && workload.fusions.gradient_accumulation ? Sizes(workload, habits).layer_matrices() : 0;
}

std::vector<std::vector<UnitMemory>> unit_memories(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync,
                                                   const StageProgram& stage) {
  const Sizes sizes(workload, habits);
  std::vector<std::vector<UnitMemory>> memories;
  std::map<std::pair<const UnitProgram*, int>, UnitMemory> known;  // by program and, of experts, chunks
  for (const std::vector<Unit>& units : stage.chunks) {
    std::vector<UnitMemory>& chunk = memories.emplace_back();
    for (const Unit& unit : units) {
      const int chunks = unit.layer_kind == LayerKind::experts ? workload.experts.chunks_of(unit.first_layer) : 0;
      const auto [it, added] = known.try_emplace({unit.program.get(), chunks});
      if (added) it->second = memory_of(sizes, unit).with_replicas(sync, exchanged_at_once(workload, habits, unit));
      chunk.push_back(it->second);
    }
  }
  return memories;
}

UnitMemory unit_memory(const Workload& workload, const MemoryHabits& habits, const Unit& unit) {
  return memory_of(Sizes(workload, habits), unit);
}

RankMemories::RankMemories(const Workload& workload, const MemoryHabits& habits, const ReplicaSync& sync, const StageProgram& stage,
                           const ExpertLoads* loads, int expert_rank)
    : stage_(stage), units_(unit_memories(workload, habits, sync, stage)), loads_(loads), expert_rank_(expert_rank) {}

UnitMemory RankMemories::at(int chunk, int unit, int microbatch) const {
  const UnitMemory& alone = units_[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(unit)];
  const Unit& what = stage_.chunks[static_cast<std::size_t>(chunk)][static_cast<std::size_t>(unit)];
  return what.layer_kind == LayerKind::experts ? alone.with_tokens(loads_->received(expert_rank_, what.first_layer, microbatch)) : alone;
}

}  // namespace rehearse::workloads
