#include "workloads/unit_memory.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/operators/shard.hpp"

namespace rehearse::workloads {
namespace {

constexpr double fp32 = 4;
constexpr double mask_byte = 1;

double gradient_bytes(const Workload& workload, const MemoryHabits& habits) {
  const DType weights = workload.precision.weights;
  const double added_up = bytes_of(workload.precision.gradients);
  if (!habits.half_gradients || bytes_of(weights) >= added_up) return added_up;
  return bytes_of(weights) + (weights == DType::fp16 ? 0 : added_up);
}

// Adam: both moments, a master copy of weights that are kept in fewer bits, and with ZeRO a copy of gradients that are kept in fp16 only.
double optimizer_bytes(const Workload& workload, const MemoryHabits& habits) {
  const double state = bytes_of(workload.precision.optimizer);
  const bool sharded_copy = habits.half_gradients && workload.precision.weights == DType::fp16 && workload.optimizer.zero_stage > 0;
  return state * (2 + (bytes_of(workload.precision.weights) < state ? 1 : 0) + (sharded_copy ? 1 : 0));
}

// Sizes in bytes of the tensors that units work on.
class Sizes {
 public:
  Sizes(const Workload& workload, const MemoryHabits& habits)
      : workload_(workload), habits_(habits), shard_(shard_of(workload)), weight_(bytes_of(workload.precision.weights)) {}

  [[nodiscard]] UnitMemory layers(int layers, bool recomputed) const {
    Workload nothing_dropped = workload_;
    nothing_dropped.recompute = {};
    const double kept = layer_activation_bytes(workload_, recomputed);
    const double dropped = layer_activation_bytes(nothing_dropped, false) - kept;
    UnitMemory memory;
    memory.activations = layers * kept;
    memory.forward_temporary = dropped;
    memory.backward_temporary = dropped + layer_gradients();
    memory.weight_temporary = accumulates() ? 0 : static_cast<double>(shard_.hidden) * ffn_width() * weight_;
    memory.forward_communication = gathered_states() + context_buffers();
    const double with_gradients = workload_.parallel.cp_comm == ContextComm::all_to_all ? 1 : 2;
    memory.backward_communication = (shard_.sp ? 2 : 1) * gathered_states() + with_gradients * context_buffers();
    return memory;
  }

  // Kept: the mask of the dropout; the output is the first layer's input. Backward makes a dense gradient of the table.
  [[nodiscard]] UnitMemory embedding() const {
    UnitMemory memory;
    memory.activations = shard_.dropout ? spread_elements() * mask_byte : 0;
    memory.backward_temporary = states();
    memory.weight_temporary = table();
    memory.forward_communication = gathered_states();
    memory.backward_communication = shard_.sp ? gathered_states() : 0;
    return memory;
  }

  // Kept: inputs of the final norm and of the logits, and per logit either the gradient, which the fused loss writes in place of the
  // logit, or the probability in fp32. Not fused: the logits and their copy in fp32 live until the loss is known, their gradient is a copy.
  [[nodiscard]] UnitMemory head() const {
    const double logits = static_cast<double>(shard_.tokens * shard_.vocab);
    const bool fused = workload_.fusions.cross_entropy;
    UnitMemory memory;
    memory.activations = 2 * states() + logits * (fused ? shard_.element : fp32);
    memory.forward_temporary = fused ? 0 : logits * (shard_.element + fp32);
    memory.backward_temporary = 2 * states() + (fused ? 0 : logits * shard_.element);
    if (habits_.gradient_placeholders || !accumulates()) memory.weight_temporary = table();
    memory.forward_communication = shard_.sp ? gathered_states() : 0;
    memory.backward_communication = (shard_.sp ? 2 : 1) * gathered_states();
    return memory;
  }

  [[nodiscard]] double layer_matrices() const {
    const double attention = shard_.heads > 0 ? static_cast<double>(2 * shard_.query_width + 2 * shard_.kv_width) : 0;
    return static_cast<double>(shard_.hidden) * (attention + ffn_width() + static_cast<double>(shard_.ffn)) * weight_;
  }

 private:
  [[nodiscard]] bool accumulates() const { return workload_.fusions.gradient_accumulation; }
  [[nodiscard]] double ffn_width() const { return static_cast<double>(shard_.ffn) * (workload_.model.gated() ? 2 : 1); }
  [[nodiscard]] double spread_elements() const { return static_cast<double>(shard_.spread_tokens * shard_.hidden); }
  [[nodiscard]] double states() const { return spread_elements() * shard_.element; }
  [[nodiscard]] double table() const { return static_cast<double>(shard_.vocab * shard_.hidden) * weight_; }

  // The hidden states of all tokens: gathered under sequence parallelism, otherwise the buffer of the all-reduce.
  [[nodiscard]] double gathered_states() const {
    return shard_.tp > 1 ? static_cast<double>(shard_.tokens * shard_.hidden) * shard_.element : 0;
  }

  // Keys and values. Ring: the block at hand and the one on its way; all-gather: of the whole sequence. All-to-all: what arrives of
  // queries, keys and values (in backward of their gradients).
  [[nodiscard]] double context_buffers() const {
    if (shard_.cp == 1) return 0;
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
  // attention's context, queries, keys and values (unfused: and scores and probabilities).
  [[nodiscard]] double layer_gradients() const {
    const auto tokens = static_cast<double>(shard_.tokens);
    const double mlp = tokens * (ffn_width() + static_cast<double>(shard_.ffn));
    double attention = tokens * static_cast<double>(2 * shard_.query_width + 2 * shard_.kv_width);
    if (workload_.attention == Attention::unfused) attention += 2 * tokens * static_cast<double>(shard_.heads * shard_.sequence);
    return 2 * states() + std::max(mlp, shard_.heads > 0 ? attention : 0) * shard_.element;
  }

  const Workload& workload_;
  const MemoryHabits& habits_;
  Shard shard_;
  double weight_;
};

// Of one unit: how many equal layers it stands for; the embedding and the head count as one.
int count_of(const Unit& unit, double layer_parameters) {
  return unit.first_layer < 0 ? 1 : static_cast<int>(std::lround(unit.program->parameters / layer_parameters));
}

UnitMemory memory_of(const Workload& workload, const Sizes& sizes, const Unit& unit, int layers) {
  if (unit.first_layer < 0) return unit.name == "embedding" ? sizes.embedding() : sizes.head();
  const bool recomputed = workload.recompute.kind == RecomputeKind::full && !unit.program->recompute.empty();
  return sizes.layers(layers, recomputed);
}

}  // namespace

StaticMemory static_memory(const Workload& workload, const MemoryHabits& habits, double parameters) {
  const int zero = workload.optimizer.zero_stage;
  const double ranks = replica_sync(workload).shard_ranks;
  const bool no_copy = zero == 3 && habits.sharded_master && bytes_of(workload.precision.weights) < bytes_of(workload.precision.optimizer);
  StaticMemory memory;
  memory.weights = no_copy ? 0 : parameters * bytes_of(workload.precision.weights) / (zero == 3 ? ranks : 1);
  // Gradients that are not reduced after every micro-batch cannot be sharded.
  memory.gradients = parameters * gradient_bytes(workload, habits) / (replica_sync(workload).reduce_each_microbatch ? ranks : 1);
  const double updated = parameters / (zero > 0 ? ranks : 1);
  (workload.optimizer.on_cpu ? memory.host : memory.optimizer) = updated * optimizer_bytes(workload, habits);
  // Beside the states the host receives the gradients and makes the new weights.
  if (workload.optimizer.on_cpu) memory.host += updated * (bytes_of(workload.precision.gradients) + bytes_of(workload.precision.weights));
  if (zero > 0 && ranks > 1) memory.temporary = habits.bucket_bytes;
  if (habits.gradient_placeholders && workload.fusions.gradient_accumulation) memory.temporary += Sizes(workload, habits).layer_matrices();
  return memory;
}

std::vector<std::vector<UnitMemory>> unit_memories(const Workload& workload, const MemoryHabits& habits, const StageProgram& stage) {
  const Sizes sizes(workload, habits);
  const ReplicaSync sync = replica_sync(workload);
  const double layer_parameters = layer_program(workload, false).parameters;
  std::vector<std::vector<UnitMemory>> memories;
  for (const std::vector<Unit>& units : stage.chunks) {
    std::vector<UnitMemory>& chunk = memories.emplace_back();
    for (const Unit& unit : units) {
      const int layers = count_of(unit, layer_parameters);
      UnitMemory& memory = chunk.emplace_back(memory_of(workload, sizes, unit, layers));
      if (sync.ranks == 1) continue;
      const double parameters = unit.program->parameters / layers;  // one layer at a time
      if (sync.shards_parameters) memory.gathered = parameters * bytes_of(workload.precision.weights);
      if (sync.reduce_each_microbatch) memory.bucket = parameters * bytes_of(workload.precision.weights);  // as autograd makes them
    }
  }
  return memories;
}

}  // namespace rehearse::workloads
