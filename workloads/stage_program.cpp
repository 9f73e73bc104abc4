#include "workloads/stage_program.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "workloads/mixer.hpp"
#include "workloads/operators/section.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

Operator copy_of(const std::string& name, double bytes, Pass pass) {
  Operator op;
  op.name = name;
  op.cls = OperatorClass::memory_bound;
  op.pass = pass;
  op.bytes = bytes;
  return op;
}

// Of a unit, those that go over more than one rank; FSDP2 copies them on one as well.
double exchanged_parameters(const ReplicaSync& sync, const BlockProgram& program) {
  const double dense = sync.ranks > 1 || sync.copied ? program.parameters - program.expert_parameters : 0;
  return dense + (sync.expert_ranks > 1 ? program.expert_parameters : 0);
}

// FSDP2 (torch/distributed/fsdp/_fully_shard): what a gather brought lies rank by rank and is copied into the parameters, before forward
// and again before backward; gradients are copied, and cast, into what is reduced. All on the stream that computes.
BlockProgram with_copies(const Workload& workload, const ReplicaSync& sync, BlockProgram program) {
  const double moved = exchanged_parameters(sync, program);
  if (!workload.optimizer.copies || moved == 0) return program;
  const double base = workload.lora.on() && workload.lora.nf4 ? nf4_bytes : bytes_of(workload.precision.weights);
  const double read = (moved - program.adapters) * base + program.adapters * bytes_of(workload.trained_weights());
  if (sync.shards_parameters) {
    program.forward.insert(program.forward.begin(), copy_of("parameter copy", 2 * read, Pass::forward));
    program.backward.insert(program.backward.begin(), copy_of("parameter copy", 2 * read, Pass::backward_input));
  }
  const double reduced = workload.lora.on() ? program.adapters : moved;
  if (sync.reduce_each_microbatch && reduced > 0) {
    const double bytes = reduced * (bytes_of(workload.trained_weights()) + sync.gradient_bytes);
    program.backward.emplace_back(copy_of("gradient copy", bytes, Pass::backward_input));
  }
  return program;
}

// FSDP1 (torch/distributed/fsdp/_flat_param.py, _runtime_utils.py): weights are views of what was gathered, whose gradients autograd joins
// into that of the flat parameter (split_with_sizes_backward, a cat). Where it is reduced it is cast to the type of the reduction and
// divided by a part of the ranks (_post_backward_hook, _div_if_needed), on a stream of its own beside whatever computes, whose share of the
// memory's bandwidth it takes: counted as if nothing ran beside it.
BlockProgram with_flat_gradients(const Workload& workload, const ReplicaSync& sync, BlockProgram program) {
  const double moved = exchanged_parameters(sync, program);
  const double reduced = workload.lora.on() ? program.adapters : moved;
  if (!workload.optimizer.flat || workload.optimizer.zero_stage < 2 || moved == 0 || reduced == 0) return program;
  const double own = bytes_of(workload.trained_weights()), wide = sync.gradient_bytes;
  const double bytes = 2 * own + (sync.reduce_each_microbatch ? (own == wide ? 0 : own + wide) + 2 * wide : 0);
  program.backward.emplace_back(copy_of("gradient copy", reduced * bytes, Pass::backward_input));
  return program;
}

BlockProgram with_exchange(const Workload& workload, const ReplicaSync& sync, BlockProgram program) {
  return with_flat_gradients(workload, sync, with_copies(workload, sync, std::move(program)));
}

// Autocast: weights are cast before the products that read them, once more where forward is computed again; gradients are cast back.
BlockProgram with_casts(const Workload& workload, bool recomputed, BlockProgram program) {
  if (!autocasts(workload)) return program;
  const double bytes = program.parameters * (bytes_of(workload.precision.optimizer) + product_weight_bytes(workload));
  program.forward.insert(program.forward.begin(), copy_of("weight cast", bytes, Pass::forward));
  if (recomputed) program.backward.insert(program.backward.begin(), copy_of("weight cast", bytes, Pass::backward_input));
  program.backward.emplace_back(copy_of("gradient cast", bytes, Pass::backward_input));
  return program;
}

// Parameter tensors of a layer: the matrices of attention or mixer and MLP, biases, norms.
int layer_tensors(const Workload& workload, const LayerShape& shape) {
  const Model& model = workload.model;
  const int inputs = workload.fusions.separate_qkv ? 3 : 1;
  const bool attends = model.heads > 0 && (shape.reach == Reach::sequence || shape.reach == Reach::window);
  const int mixer = shape.reach == Reach::state ? mixer_tensors(*model.mixer) : 0;
  const int attention = attends ? 1 + inputs + (model.qkv_bias() ? inputs : 0) + (model.projection_bias() ? 1 : 0) : 0;
  const bool feeds = shape.kind != LayerKind::none;
  const int mlp = feeds ? (model.gated() ? 3 : 2) * (model.biases ? 2 : 1) : 0;
  const int blocks = (attends || mixer > 0 ? 1 : 0) + (feeds ? 1 : 0);
  const int norms = (model.shares_norm() ? 1 : blocks) * (model.post_norms ? 2 : 1) + (model.qk_norm && attends ? 2 : 0);
  return attention + mixer + mlp + norms * (model.norm == Norm::layernorm && model.biases ? 2 : 1);
}

// A last norm, and a head of its own.
int head_tensors(const Workload& workload) { return workload.model.tied_embeddings && ends_meet(workload) ? 1 : 2; }

// Of a stage on average those that are trained: of its layers, and of a table, a last norm and a head of its own.
int stage_tensors(const Workload& workload) {
  const Model& model = workload.model;
  const int pp = workload.parallel.pp;
  if (workload.lora.on()) return (model.layers + pp - 1) / pp * adapter_tensors(workload);
  const int ends = model.vocab == 0 ? 0 : pp > 1 ? 2 : 1 + head_tensors(workload);
  int layers = 0;
  for (int layer = 0; layer < model.layers; ++layer) layers += layer_tensors(workload, shape_of(model, layer));
  return (layers + pp - 1) / pp + ends;
}

// Cuts each distinct layer once.
class LayerPrograms {
 public:
  LayerPrograms(const Workload& workload, const ReplicaSync& sync, const Cutter& cutter)
      : workload_(workload), sync_(sync), cutter_(cutter) {}
  std::shared_ptr<const UnitProgram> get(bool recomputed, const LayerShape& shape, bool offloaded) {
    const auto& [kind, reach] = shape;
    auto& program = programs_[{recomputed, shape, offloaded}];
    if (program) return program;
    const bool casts_again = recomputed || workload_.recompute.every_second_product();
    UnitProgram made = cutter_.unit(
        with_exchange(workload_, sync_, with_casts(workload_, casts_again, layer_program(workload_, recomputed, kind, reach))));
    made.layer_parameters = base_parameters(made);
    made.tensors = layer_tensors(workload_, shape);
    if (offloaded) {
      const double share = workload_.offload_share;
      made.offloaded_bytes = share * layer_activation_bytes(workload_, recomputed, kind, reach);
      if (kind == LayerKind::experts) made.offloaded_per_pair = share * received_activation_bytes(workload_, recomputed);
    }
    program = std::make_shared<const UnitProgram>(std::move(made));
    return program;
  }

 private:
  const Workload& workload_;
  const ReplicaSync& sync_;
  const Cutter& cutter_;
  std::map<std::tuple<bool, LayerShape, bool>, std::shared_ptr<const UnitProgram>> programs_;
};

// What is left of a GPU's share of layers, chunk after chunk, that are recomputed in full, and that are offloaded.
struct LayersLeft {
  explicit LayersLeft(const Workload& workload)
      : full(workload.recompute.kind != RecomputeKind::full ? 0
             : workload.recompute.full_layers < 0           ? all
                                                            : workload.recompute.full_layers),
        offloaded(!workload.offload_activations ? 0
                  : workload.offload_layers < 0 ? all
                                                : workload.offload_layers) {}
  static constexpr int all = std::numeric_limits<int>::max();
  int full, offloaded;
};

void add_layers(const Workload& workload, const Chunk& chunk, LayersLeft& left, LayerPrograms& programs, std::vector<Unit>& units) {
  for (int layer = chunk.first_layer; layer < chunk.first_layer + chunk.layers; ++layer) {
    const bool recomputed = left.full-- > 0, offloaded = left.offloaded-- > 0;
    const LayerShape shape = shape_of(workload.model, layer);
    units.push_back({programs.get(recomputed, shape, offloaded), "layer " + std::to_string(layer), layer, UnitKind::layer, recomputed,
                     shape.kind, shape.reach});
  }
}

// After the model's last layer: MTP modules, each with a run of the head that it shares.
void add_predictions(const Workload& workload, const Cutter& cutter, LayersLeft& left, std::vector<Unit>& units) {
  if (workload.model.mtp == 0) return;
  BlockProgram shared_head = head_program(workload);
  shared_head.parameters = 0;
  const auto head = std::make_shared<const UnitProgram>(cutter.unit(shared_head));
  const LayerShape shape = shape_of(workload.model, workload.model.layers);
  for (int k = 0; k < workload.model.mtp; ++k) {
    const bool recomputed = left.full-- > 0;
    const bool holds_embedding = k == 0 && !ends_meet(workload);  // the first stage's table is out of reach
    UnitProgram made = cutter.unit(prediction_program(workload, recomputed, holds_embedding));
    made.layer_parameters = made.parameters - (holds_embedding ? embedding_program(workload).parameters : 0);
    constexpr int before_the_layer = 3;  // a product of two norms' outputs; the last norm is the layer's own
    made.tensors = before_the_layer + 1 + layer_tensors(workload, shape) + (holds_embedding ? 1 : 0);
    const auto program = std::make_shared<const UnitProgram>(std::move(made));
    const std::string name = "mtp " + std::to_string(k);
    units.push_back({program, name, workload.model.layers + k, UnitKind::prediction, recomputed, shape.kind, shape.reach});
    units.push_back({head, name + " head", -1, UnitKind::head});
  }
}

void number_programs(std::vector<StageProgram>& stages) {
  std::vector<const UnitProgram*> distinct;
  for (StageProgram& stage : stages) {
    for (std::vector<Unit>& units : stage.chunks) {
      for (Unit& unit : units) {
        const auto found = std::ranges::find(distinct, unit.program.get());
        unit.program_number = static_cast<int>(found - distinct.begin());
        if (found == distinct.end()) distinct.push_back(unit.program.get());
      }
    }
  }
}

void add_up_parameters(StageProgram& stage) {
  for (const auto& units : stage.chunks) {
    stage.of_chunk.emplace_back();
    for (const Unit& unit : units) {
      for (Parameters* sum : {&stage.parameters, &stage.of_chunk.back()}) {
        sum->all += unit.program->parameters;
        sum->experts += unit.program->expert_parameters;
        sum->layers += unit.program->layer_parameters;
        sum->frozen += unit.program->frozen_parameters;
        sum->tensors += unit.program->tensors;
      }
    }
  }
}

std::shared_ptr<const UnitProgram> end_program(const Cutter& cutter, const BlockProgram& block, int tensors) {
  UnitProgram made = cutter.unit(block);
  made.tensors = tensors;
  return std::make_shared<const UnitProgram>(std::move(made));
}

}  // namespace

// ZeRO-2 and 3 keep a shard of the gradients.
HeldParameters held_in_step(const Workload& workload, const ReplicaSync& sync, const Parameters& own, double updated) {
  const bool sharded = workload.optimizer.zero_stage > 0;
  const double dense = own.layers - own.experts;
  return {.gradients = workload.optimizer.zero_stage > 1 ? updated : own.trained(),
          .layers = own.layers,
          .experts = own.experts,
          .dense_updated = sharded ? std::max(dense / sync.shard_ranks, std::min(dense, sync.largest_matrix)) : dense,
          .experts_updated = sharded ? own.experts / sync.expert_ranks : own.experts,
          .tensors = workload.lora.on() ? stage_tensors(workload) : own.tensors};
}

std::vector<StageProgram> stage_programs(const Workload& workload, Cut cut) {
  const Cutter cutter(workload, cut);
  const ReplicaSync sync = replica_sync(workload);
  LayerPrograms layers(workload, sync, cutter);
  std::shared_ptr<const UnitProgram> embedding, head;
  if (workload.model.vocab > 0) {
    embedding = end_program(cutter, with_exchange(workload, sync, embedding_program(workload)), 1);
    head = end_program(cutter, with_exchange(workload, sync, with_casts(workload, false, head_program(workload))), head_tensors(workload));
  }
  std::vector<StageProgram> stages;
  for (const std::vector<Chunk>& chunks : split_layers(workload)) {
    StageProgram& stage = stages.emplace_back();
    LayersLeft left(workload);
    for (const Chunk& chunk : chunks) {
      std::vector<Unit>& units = stage.chunks.emplace_back();
      const int of_ends = (chunk.embedding ? 1 : 0) + (chunk.head ? 1 + 2 * workload.model.mtp : 0);
      units.reserve(static_cast<std::size_t>(chunk.layers) + static_cast<std::size_t>(of_ends));
      if (chunk.embedding && embedding) units.push_back({embedding, "embedding", -1, UnitKind::embedding});
      add_layers(workload, chunk, left, layers, units);
      if (chunk.head && head) {
        units.push_back({head, "head", -1, UnitKind::head});
        add_predictions(workload, cutter, left, units);
      }
    }
    add_up_parameters(stage);
    const double own = sync.updated(stage.parameters);
    const OptimizerProgram optimizer = optimizer_program(workload, own, held_in_step(workload, sync, stage.parameters, own));
    stage.update = optimizer.update;
    stage.on_host = optimizer.on_host;
  }
  number_programs(stages);
  return stages;
}

ReplicaCalls ReplicaSync::reduction_calls(const Parameters& what) const {
  const double dense = (what.trained() - what.experts) * gradient_bytes / calls_of(what);
  const double own = what.experts * gradient_bytes / calls_of(what);
  const bool sharded = (shards_parameters || gathers_weights) && !all_reduces;
  const CollectiveKind kind = sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  ReplicaCalls calls;
  if (ranks > 1 && dense > 0) {
    const bool copied = sharded && copies() > 1;
    calls.add({kind, copied ? GroupKind::shard : GroupKind::dp_cp, dense});
    if (copied) calls.add({CollectiveKind::all_reduce, GroupKind::replicas, dense / shard_ranks});
  }
  if (expert_ranks > 1 && own > 0) calls.add({kind, GroupKind::edp, own});
  return calls;
}

// A broadcast passes its buffer on from rank to rank, piece by piece (NCCL has no tree for it): n-1 hops and the buffer once, as a ring's
// all-gather of as many bytes.
ReplicaCalls ReplicaSync::gather_calls(const Parameters& what, int pieces) const {
  const double own = what.experts * layer_weight_bytes / pieces;
  // ZeRO-1 and 2 gather what the update has changed.
  const bool adapters = what.frozen > 0 && gathers_weights;
  const double all = adapters ? what.trained() * trained_weight_bytes
                              : gathered_bytes({what.all - what.experts, 0, what.layers - what.experts, what.frozen});
  const double dense = all / pieces;
  ReplicaCalls calls;
  if (from_host && dense > 0) calls.add({CollectiveKind::send_recv, GroupKind::from_host, dense / shard_ranks});
  if (ranks > 1 && dense > 0) calls.add({CollectiveKind::all_gather, copies() == 1 ? GroupKind::dp_cp : GroupKind::shard, dense});
  if (expert_ranks > 1 && own > 0) calls.add({CollectiveKind::all_gather, GroupKind::edp, own});
  return calls;
}

namespace {

std::vector<Communication> named(const ReplicaCalls& calls, const std::string& what) {
  std::vector<Communication> all;
  for (const ReplicaCall& call : calls) {
    const std::string whose = call.group == GroupKind::edp ? "expert " : "";
    const std::string how = call.group == GroupKind::from_host ? "from host" : std::string(name_of(call.kind));
    all.push_back({whose + what + " " + how, call.kind, call.group, call.bytes, Pass::update});
  }
  return all;
}

}  // namespace

std::vector<Communication> ReplicaSync::reductions(const Parameters& what) const { return named(reduction_calls(what), "gradient"); }

std::vector<Communication> ReplicaSync::gathers(const Parameters& what) const { return named(gather_calls(what), "parameter"); }

std::vector<Communication> ReplicaSync::gathers_at_once(const Parameters& what) const {
  return named(gather_calls_at_once(what), "parameter");
}

namespace {

double largest_matrix(const Workload& workload) {
  const Model& model = workload.model;
  const double columns = model.mixer ? static_cast<double>(mixer_columns(*model.mixer)) : 0;
  return std::max(columns, static_cast<double>(model.ffn)) * static_cast<double>(model.hidden) / workload.parallel.tp;
}

double largest_tensor(const Workload& workload) {
  if (workload.lora.on()) return largest_matrix(workload) / workload.model.hidden * workload.lora.rank;
  const double table =
      workload.parallel.pp > 1 ? 0 : static_cast<double>(workload.model.vocab) * static_cast<double>(workload.model.hidden);
  return std::max(largest_matrix(workload), table / static_cast<double>(shard_of(workload).head_tp));
}

// ZeRO-1 and 2 by whole tensors, as InternEvo's: the largest first, each to the rank that has least (hybrid_zero_optim.py).
void give_to_owners(const Workload& workload, ReplicaSync& sync) {
  sync.owners = std::min(sync.shard_ranks, stage_tensors(workload));
  sync.largest_tensor = largest_tensor(workload);
}

}  // namespace

ReplicaSync replica_sync(const Workload& workload) { return replica_sync(workload, ScheduleRegistry::get(workload.schedule).mirrors()); }

bool reduces_each_microbatch(const Workload& workload) {
  const int zero = workload.optimizer.zero_stage;
  const bool waits = workload.optimizer.no_sync && workload.microbatches() > 1;  // an only micro-batch is the last one
  return !waits && (zero == 3 || (zero == 2 && workload.parallel.pp == 1));
}

int shard_ranks(const Workload& workload, int replicas) {
  const Optimizer& optimizer = workload.optimizer;
  return optimizer.zero_stage > 0 && optimizer.shard_group > 0 ? optimizer.shard_group : replicas;
}

ReplicaSync replica_sync(const Workload& workload, bool mirrors) {
  const int zero = workload.optimizer.zero_stage;
  ReplicaSync sync;
  const Parallel& parallel = workload.parallel;
  const int copies = mirrors ? 2 : 1;
  sync.ranks = parallel.dp * parallel.cp * copies;
  if (workload.model.moe) sync.expert_ranks = parallel.expert_replicas() * copies;
  sync.shards_parameters = zero == 3;
  sync.from_host = workload.offload_weights;
  sync.reduce_each_microbatch = reduces_each_microbatch(workload);
  sync.copied = zero == 3 && workload.optimizer.copies;
  sync.overlap_gradients = workload.overlap.dp_gradients;
  sync.overlap_parameters = workload.overlap.dp_parameters;
  sync.shard_ranks = shard_ranks(workload, sync.ranks);
  sync.gathers_weights = zero == 1 || zero == 2;
  sync.gradient_bytes = bytes_of(workload.precision.gradients);
  sync.weight_bytes = bytes_of(workload.precision.weights);
  sync.layer_weight_bytes = workload.precision.param_gather ? bytes_of(*workload.precision.param_gather) : sync.weight_bytes;
  sync.kept_layer_bytes = sync.weight_bytes;
  if (workload.lora.on() && workload.lora.nf4) {
    const bool values_alone = zero == 3 && !workload.optimizer.copies;  // scales are on every GPU (frozen_weights.hpp)
    sync.layer_weight_bytes = values_alone ? nf4_value : nf4_bytes;
    sync.kept_layer_bytes = nf4_bytes;
  }
  sync.trained_weight_bytes = bytes_of(workload.trained_weights());
  sync.all_reduces = workload.optimizer.all_reduces && sync.gathers_weights;
  if (sync.gathers_weights && workload.optimizer.by_owner) give_to_owners(workload, sync);
  // Muon needs whole matrices. Megatron-Core's layer-wise optimizer scatters gradients to their owners and gathers weights all the same.
  if (sync.gathers_weights && workload.optimizer.muon()) {
    sync.largest_tensor = largest_tensor(workload);
    sync.largest_matrix = largest_matrix(workload);
  }
  const bool by_adapter = workload.optimizer.by_adapter && workload.lora.on();
  if (zero == 3 && (workload.optimizer.by_tensor || by_adapter)) {
    sync.overlap_gradients = sync.overlap_parameters = false;
    sync.by_tensor = workload.optimizer.by_tensor;
    sync.calls_per_layer = sync.by_tensor ? 1 : 1 + adapter_tensors(workload);
  }
  return sync;
}

double tied_embedding_bytes(const Workload& workload) {
  if (!workload.model.tied_embeddings || workload.model.vocab == 0 || ends_meet(workload) || workload.lora.on()) return 0;
  return head_program(workload).parameters * bytes_of(workload.precision.gradients);
}

}  // namespace rehearse::workloads
