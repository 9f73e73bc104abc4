#include "workloads/stage_program.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "workloads/operators/section.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/parameter_tensors.hpp"
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

// Parameters that a unit gathers and reduces; by the root, which is gathered once for both passes.
struct Moved {
  double parameters = 0;
  bool by_root = false;
};

// Of a unit, those that go over more than one rank; FSDP2 copies them on one as well.
double exchanged_parameters(const ReplicaSync& sync, const BlockProgram& program) {
  const double dense = sync.ranks > 1 || sync.copied ? program.parameters - program.expert_parameters : 0;
  return dense + (sync.expert_ranks > 1 ? program.expert_parameters : 0);
}

// FSDP2 (torch/distributed/fsdp/_fully_shard): what a gather brought lies rank by rank and is copied into the parameters, before forward
// and again before backward; gradients are copied, and cast, into what is reduced. All on the stream that computes.
BlockProgram with_copies(const Workload& workload, const ReplicaSync& sync, const Moved& moved, BlockProgram program) {
  if (!workload.optimizer.copies || moved.parameters == 0) return program;
  const double base = workload.lora.on() && workload.lora.nf4 ? nf4_bytes : bytes_of(workload.precision.weights);
  const double read = (moved.parameters - program.adapters) * base + program.adapters * bytes_of(workload.trained_weights());
  if (sync.shards_parameters) {
    program.forward.insert(program.forward.begin(), copy_of("parameter copy", 2 * read, Pass::forward));
    if (!moved.by_root) program.backward.insert(program.backward.begin(), copy_of("parameter copy", 2 * read, Pass::backward_input));
  }
  const double reduced = workload.lora.on() ? program.adapters : moved.parameters;
  if (sync.reduce_each_microbatch && reduced > 0) {
    const double bytes = reduced * (bytes_of(workload.trained_weights()) + sync.gradient_bytes);
    program.backward.emplace_back(copy_of("gradient copy", bytes, Pass::backward_input));
  }
  return program;
}

// FSDP1 (torch/distributed/fsdp/_flat_param.py, _runtime_utils.py): weights are views of what was gathered, whose gradients autograd joins
// into that of the flat parameter (split_with_sizes_backward, a cat). Where it is reduced it is cast to the type of the reduction and
// divided by a part of the ranks (_post_backward_hook, _div_if_needed), on a stream of its own beside whatever computes, whose share of the
// memory's bandwidth it takes: counted as if nothing ran beside it. The views are made on the stream that gathers (_unshard), where
// autograd joins their gradients too: behind the gather of the unit that comes next, which was issued before this one's backward
// (BACKWARD_PRE). With hybrid sharding no gather is late: it stays in its shard group, and the all-reduce between these has a stream of its
// own (_reduce_grad); where that is not told apart here, it is joined at once. The root's are joined when nothing more is gathered.
BlockProgram with_flat_gradients(const Workload& workload, const ReplicaSync& sync, const Moved& moved, BlockProgram program) {
  const double reduced = workload.lora.on() ? program.adapters : moved.parameters;
  if (!workload.optimizer.flat || workload.optimizer.zero_stage < 2 || moved.parameters == 0 || reduced == 0) return program;
  const double own = bytes_of(workload.trained_weights()), wide = sync.gradient_bytes;
  const double bytes = 2 * own + (sync.reduce_each_microbatch ? (own == wide ? 0 : own + wide) + 2 * wide : 0);
  Operator copy = copy_of("gradient copy", reduced * bytes, Pass::backward_input);
  const bool gathers_pass = sync.copies() == 1 || sync.copies_beside;
  const bool next_is_gathered = sync.shards_parameters && gathers_pass && !workload.overlap.ep && !moved.by_root;
  copy.behind_gather = next_is_gathered && !workload.optimizer.joins_at_once;
  program.backward.emplace_back(std::move(copy));
  return program;
}

BlockProgram with_exchange(const Workload& workload, const ReplicaSync& sync, const Moved& moved, BlockProgram program) {
  return with_flat_gradients(workload, sync, moved, with_copies(workload, sync, moved, std::move(program)));
}
BlockProgram with_exchange(const Workload& workload, const ReplicaSync& sync, BlockProgram program) {
  const Moved own{exchanged_parameters(sync, program)};
  return with_exchange(workload, sync, own, std::move(program));
}

// FSDP's root (torch/distributed/fsdp/_runtime_utils.py; _fully_shard/_fsdp_state.py): what no other unit holds, embedding, last norm and
// head, is gathered when a forward begins, behind the reductions of the backward before (_root_pre_forward), stays until the last backward
// is over, and is reduced then.
bool has_root_of_both_ends(const Workload& workload) {
  return workload.optimizer.root && workload.optimizer.zero_stage == 3 && workload.parallel.pp == 1 && workload.model.vocab > 0;
}

void join_root(std::vector<Unit>& units) {
  for (Unit& unit : units) {
    if (unit.kind != UnitKind::head || unit.exchanged.all == 0) continue;
    units.front().exchanged += unit.exchanged;
    unit.exchanged = {};
  }
  units.front().leads_root = true;
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

// Cuts each distinct layer once.
class LayerPrograms {
 public:
  LayerPrograms(const Workload& workload, const ReplicaSync& sync, const Cutter& cutter)
      : workload_(workload), sync_(sync), cutter_(cutter) {
    if (workload.precision.wide_layers() > 0) wide_ = of_wide_layers(workload);
  }
  std::shared_ptr<const UnitProgram> get(bool recomputed, const LayerShape& shape, bool wide, bool offloaded) {
    const auto& [kind, reach] = shape;
    const Workload& own = wide ? *wide_ : workload_;
    auto& program = programs_[{recomputed, shape, wide, offloaded}];
    if (program) return program;
    const bool casts_again = recomputed || own.recompute.every_second_product();
    UnitProgram made = cutter_.unit(with_exchange(own, sync_, with_casts(own, casts_again, layer_program(own, recomputed, kind, reach))));
    made.layer_parameters = base_parameters(made);
    made.tensors = layer_tensors(own, shape);
    if (offloaded) {
      const double share = own.offload_share;
      made.offloaded_bytes = share * layer_activation_bytes(own, recomputed, kind, reach);
      if (kind == LayerKind::experts) made.offloaded_per_pair = share * received_activation_bytes(own, recomputed);
    }
    program = std::make_shared<const UnitProgram>(std::move(made));
    return program;
  }

 private:
  const Workload& workload_;
  std::optional<Workload> wide_;  // where there are such layers
  const ReplicaSync& sync_;
  const Cutter& cutter_;
  std::map<std::tuple<bool, LayerShape, bool, bool>, std::shared_ptr<const UnitProgram>> programs_;
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
    const bool wide = is_wide(workload, layer);
    const LayerShape shape = shape_of(workload.model, layer);
    units.push_back({programs.get(recomputed, shape, wide, offloaded), "layer " + std::to_string(layer), layer, UnitKind::layer, recomputed,
                     shape.kind, shape.reach});
    units.back().wide = wide;
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
      for (Parameters* sum : {&stage.parameters, &stage.of_chunk.back()}) *sum += parameters_of(*unit.program);
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
  const bool root = has_root_of_both_ends(workload);
  if (workload.model.vocab > 0) {
    const BlockProgram table = embedding_program(workload), last = with_casts(workload, false, head_program(workload));
    Moved first{exchanged_parameters(sync, table), root}, behind{exchanged_parameters(sync, last), root};
    if (root) first.parameters += std::exchange(behind.parameters, 0);
    embedding = end_program(cutter, with_exchange(workload, sync, first, table), 1);
    head = end_program(cutter, with_exchange(workload, sync, behind, last), head_tensors(workload));
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
      for (Unit& unit : units) unit.exchanged = parameters_of(*unit.program);
      if (root) join_root(units);
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

double tied_embedding_bytes(const Workload& workload) {
  if (!workload.model.tied_embeddings || workload.model.vocab == 0 || ends_meet(workload) || workload.lora.on()) return 0;
  return head_program(workload).parameters * bytes_of(workload.precision.gradients);
}

}  // namespace rehearse::workloads
