#include "workloads/stage_program.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "workloads/schedule.hpp"

namespace rehearse::workloads {
namespace {

// A piece of a product: its rows are cut.
Operator piece_of(Operator product, int splits) {
  product.m = (product.m + splits - 1) / splits;
  const double weights = bytes_of(product.dtype) * static_cast<double>(product.n) * static_cast<double>(product.k);
  product.flops /= splits;
  product.bytes = weights + std::max(0.0, product.bytes - weights) / splits;  // every piece reads the weights
  return product;
}

// Tensor-parallel collectives next to a product, where tp overlap pipelines the two.
class Pairing {
 public:
  explicit Pairing(const Overlap& overlap) : on_(overlap.tp), splits_(overlap.tp_splits) {}

  // The pair that starts at items[i], if there is one. A reduction that a weight gradient follows runs beside that, whole, and so does a
  // gather beside a product that does not need it.
  [[nodiscard]] std::optional<Segment> at(const std::vector<Item>& items, std::size_t i, int repeat) const {
    if (!on_ || i + 1 == items.size()) return std::nullopt;
    if (const auto* gather = collective(items[i], true)) {
      const auto* product = gemm(items[i + 1]);
      if (product != nullptr && gather->for_later) return BesideSegment{*product, *gather, repeat};
      if (product != nullptr) return pair(*product, *gather, true, repeat);
    } else if (const auto* reduction = collective(items[i], false)) {
      if (const auto* product = weight_gradient(items, i + 1)) return BesideSegment{*product, *reduction, repeat};
    } else if (const auto* product = gemm(items[i])) {
      const auto* reduce = collective(items[i + 1], false);
      if (reduce != nullptr && weight_gradient(items, i + 2) == nullptr) return pair(*product, *reduce, false, repeat);
    }
    return std::nullopt;
  }

 private:
  static const Operator* gemm(const Item& item) {
    const auto* op = std::get_if<Operator>(&item);
    return op != nullptr && op->cls == OperatorClass::gemm ? op : nullptr;
  }
  static const Operator* weight_gradient(const std::vector<Item>& items, std::size_t i) {
    const Operator* product = i < items.size() ? gemm(items[i]) : nullptr;
    return product != nullptr && product->pass == Pass::backward_weight ? product : nullptr;
  }
  static const Communication* collective(const Item& item, bool gather) {
    const auto* what = std::get_if<Communication>(&item);
    if (what == nullptr || what->group != GroupKind::tp) return nullptr;
    return (what->kind == CollectiveKind::all_gather) == gather ? what : nullptr;
  }
  [[nodiscard]] Segment pair(const Operator& product, Communication collective, bool first, int repeat) const {
    collective.bytes /= splits_;
    return SplitSegment{piece_of(product, splits_), std::move(collective), first, splits_, repeat};
  }
  bool on_;
  int splits_;
};

// Operators and collectives that stand alone; overlapped pairs and rings are priced by themselves.
std::shared_ptr<const PassQueue> queue_of(const std::vector<Item>& items, const Pairing& pairing) {
  auto queue = std::make_shared<PassQueue>();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (pairing.at(items, i, 1)) {
      ++i;
    } else if (const auto* op = std::get_if<Operator>(&items[i])) {
      queue->operators.push_back(*op);
    } else if (const auto* call = std::get_if<Communication>(&items[i])) {
      queue->calls.push_back(*call);
    }
  }
  return queue;
}

std::vector<Segment> one_by_one(const std::vector<Item>& items, const Pairing& pairing) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto pair = pairing.at(items, i, 1)) {
      segments.push_back(std::move(*pair));
      ++i;
    } else if (const auto* op = std::get_if<Operator>(&items[i])) {
      segments.emplace_back(ComputeSegment{{*op}, 1, op->name, nullptr});
    } else if (const auto* call = std::get_if<Communication>(&items[i])) {
      segments.emplace_back(CallSegment{*call, 1});
    } else if (const auto* experts = std::get_if<RoutedExperts>(&items[i])) {
      segments.emplace_back(ExpertSegment{*experts});
    } else {
      segments.emplace_back(RingSegment{std::get<RingAttention>(items[i]), 1});
    }
  }
  return segments;
}

// Collects the items between ring attentions and overlapped pairs: computation first, then each kind of collective once with its count.
class Run {
 public:
  explicit Run(int layers) : layers_(layers) {}
  void add(const Operator& op) { compute_.operators.push_back(op); }
  void add(const Communication& what) {
    const auto same = [&](const CallSegment& c) {
      return c.what.kind == what.kind && c.what.group == what.group && c.what.bytes == what.bytes;
    };
    const auto it = std::find_if(calls_.begin(), calls_.end(), same);
    if (it != calls_.end()) {
      it->repeat += layers_;
    } else {
      calls_.push_back({what, layers_});
    }
  }
  void flush(std::vector<Segment>& into) {
    compute_.repeat = layers_;
    if (!compute_.operators.empty()) into.emplace_back(std::move(compute_));
    for (CallSegment& call : calls_) into.emplace_back(std::move(call));
    compute_ = {};
    calls_.clear();
  }

 private:
  int layers_;
  ComputeSegment compute_;
  std::vector<CallSegment> calls_;
};

std::vector<Segment> together(const std::vector<Item>& items, int layers, const Pairing& pairing) {
  std::vector<Segment> segments;
  Run run(layers);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto pair = pairing.at(items, i, layers)) {
      run.flush(segments);
      segments.push_back(std::move(*pair));
      ++i;
    } else if (const auto* op = std::get_if<Operator>(&items[i])) {
      run.add(*op);
    } else if (const auto* call = std::get_if<Communication>(&items[i])) {
      run.add(*call);
    } else {
      run.flush(segments);
      if (const auto* experts = std::get_if<RoutedExperts>(&items[i])) {
        segments.emplace_back(ExpertSegment{*experts});
      } else {
        segments.emplace_back(RingSegment{std::get<RingAttention>(items[i]), layers});
      }
    }
  }
  run.flush(segments);
  return segments;
}

Pass pass_of(const Item& item) {
  return std::visit([](const auto& x) { return x.pass; }, item);
}

std::vector<Item> of_pass(const std::vector<Item>& items, bool weight) {
  std::vector<Item> chosen;
  for (const Item& item : items) {
    if (std::holds_alternative<RoutedExperts>(item)) {
      chosen.emplace_back(RoutedExperts{weight ? Pass::backward_weight : Pass::backward_input});
    } else if ((pass_of(item) == Pass::backward_weight) == weight) {
      chosen.push_back(item);
    }
  }
  return chosen;
}

UnitProgram compile(const BlockProgram& block, const Workload& workload, Granularity granularity, int layers) {
  const Pairing pairing(workload.overlap);
  const auto segments = [&](const std::vector<Item>& items) {
    std::vector<Segment> cut = granularity == Granularity::op ? one_by_one(items, pairing) : together(items, layers, pairing);
    const auto queue = queue_of(items, pairing);
    for (Segment& segment : cut) {
      if (auto* compute = std::get_if<ComputeSegment>(&segment)) compute->queue = queue;
    }
    return cut;
  };
  UnitProgram program{segments(block.forward),   segments(block.recompute),       segments(block.backward), {}, {},
                      block.parameters * layers, block.expert_parameters * layers};
  if (ScheduleRegistry::get(workload.schedule).splits_backward()) {
    program.backward_input = segments(of_pass(block.backward, false));
    program.backward_weight = segments(of_pass(block.backward, true));
  }
  return program;
}

// Compiles each distinct (recomputed, layer count) once.
class LayerPrograms {
 public:
  LayerPrograms(const Workload& workload, Granularity granularity) : workload_(workload), granularity_(granularity) {}
  std::shared_ptr<const UnitProgram> get(bool recomputed, int layers, LayerKind kind) {
    auto& program = programs_[{recomputed, layers, kind}];
    if (program) return program;
    UnitProgram made = compile(layer_program(workload_, recomputed, kind), workload_, granularity_, layers);
    if (workload_.offload_activations) {
      made.offloaded_bytes = layers * layer_activation_bytes(workload_, recomputed, kind);
      if (kind == LayerKind::experts) made.offloaded_per_pair = received_activation_bytes(workload_, recomputed);
    }
    program = std::make_shared<const UnitProgram>(std::move(made));
    return program;
  }

 private:
  const Workload& workload_;
  Granularity granularity_;
  std::map<std::tuple<bool, int, LayerKind>, std::shared_ptr<const UnitProgram>> programs_;
};

std::string layer_name(int first, int layers) {
  return layers == 1 ? "layer " + std::to_string(first) : "layers " + std::to_string(first) + "-" + std::to_string(first + layers - 1);
}

// full_layers counts over a GPU's share, chunk after chunk.
void add_layers(const Workload& workload, Granularity granularity, const Chunk& chunk, int& full_left, LayerPrograms& programs,
                std::vector<Unit>& units) {
  const bool full = workload.recompute.kind == RecomputeKind::full;
  for (int done = 0; done < chunk.layers;) {
    const bool recomputed = full && full_left > 0;
    const int first = chunk.first_layer + done;
    const LayerKind kind = workload.model.has_experts(first) ? LayerKind::experts : LayerKind::dense;
    int alike = recomputed ? std::min(full_left, chunk.layers - done) : chunk.layers - done;
    for (int k = 1; k < alike; ++k) {
      if (workload.model.has_experts(first + k) != (kind == LayerKind::experts)) alike = k;
    }
    // The pieces of a layer's experts overlap: it stays an operation of its own. Layers are offloaded one by one.
    const bool together = granularity == Granularity::stage && kind == LayerKind::dense && !workload.offload_activations;
    const int layers = together ? alike : 1;
    units.push_back({programs.get(recomputed, layers, kind), layer_name(first, layers), first, UnitKind::layer, layers, recomputed, kind});
    if (recomputed) full_left -= layers;
    done += layers;
  }
}

// Parameter tensors of a layer: the matrices of attention (queries, keys and values in one) and MLP, biases, norms.
int layer_tensors(const Model& model) {
  const int matrices = (model.heads > 0 ? 2 : 0) + (model.gated() ? 3 : 2);
  const int norms = (model.heads > 0 ? 2 : 1) * (model.norm == Norm::layernorm ? 2 : 1);
  return matrices * (model.biases ? 2 : 1) + norms;
}

// After the model's last layer: MTP modules, each with a run of the head that it shares.
void add_predictions(const Workload& workload, Granularity granularity, int& full_left, std::vector<Unit>& units) {
  if (workload.model.mtp == 0) return;
  BlockProgram shared_head = head_program(workload);
  shared_head.parameters = 0;
  const auto head = std::make_shared<const UnitProgram>(compile(shared_head, workload, granularity, 1));
  const bool full = workload.recompute.kind == RecomputeKind::full;
  const LayerKind kind = workload.model.has_experts(workload.model.layers) ? LayerKind::experts : LayerKind::dense;
  for (int k = 0; k < workload.model.mtp; ++k) {
    const bool recomputed = full && full_left-- > 0;
    const bool holds_embedding = k == 0 && !ends_meet(workload);  // the first stage's table is out of reach
    const auto program =
        std::make_shared<const UnitProgram>(compile(prediction_program(workload, recomputed, holds_embedding), workload, granularity, 1));
    const std::string name = "mtp " + std::to_string(k);
    units.push_back({program, name, workload.model.layers + k, UnitKind::prediction, 1, recomputed, kind});
    units.push_back({head, name + " head", -1, UnitKind::head});
  }
}

void add_up_parameters(StageProgram& stage) {
  for (const auto& units : stage.chunks) {
    for (const Unit& unit : units) {
      stage.parameters += unit.program->parameters;
      stage.expert_parameters += unit.program->expert_parameters;
    }
  }
}

}  // namespace

std::vector<StageProgram> stage_programs(const Workload& workload, Granularity granularity) {
  LayerPrograms layers(workload, granularity);
  std::shared_ptr<const UnitProgram> embedding, head;
  if (workload.model.vocab > 0) {
    embedding = std::make_shared<const UnitProgram>(compile(embedding_program(workload), workload, granularity, 1));
    head = std::make_shared<const UnitProgram>(compile(head_program(workload), workload, granularity, 1));
  }
  std::vector<StageProgram> stages;
  for (const std::vector<Chunk>& chunks : split_layers(workload)) {
    StageProgram& stage = stages.emplace_back();
    int full_left = workload.recompute.full_layers < 0 ? workload.model.layers : workload.recompute.full_layers;
    for (const Chunk& chunk : chunks) {
      std::vector<Unit>& units = stage.chunks.emplace_back();
      if (chunk.embedding && embedding) units.push_back({embedding, "embedding", -1, UnitKind::embedding});
      add_layers(workload, granularity, chunk, full_left, layers, units);
      if (chunk.head && head) {
        units.push_back({head, "head", -1, UnitKind::head});
        add_predictions(workload, granularity, full_left, units);
      }
    }
    add_up_parameters(stage);
    const bool sharded = workload.optimizer.zero_stage > 0;
    const double own = sharded ? replica_sync(workload).shard(stage.parameters, stage.expert_parameters) : stage.parameters;
    const OptimizerProgram optimizer = optimizer_program(workload, own);
    stage.update = optimizer.update;
    stage.on_host = optimizer.on_host;
  }
  return stages;
}

std::vector<Communication> ReplicaSync::reductions(double parameters, double experts) const {
  const double dense = (parameters - experts) * gradient_bytes / calls_per_unit, own = experts * gradient_bytes / calls_per_unit;
  const bool sharded = shards_parameters || gathers_weights;
  const auto all_reduce = [](GroupKind group, double bytes) {
    return Communication{"gradient all-reduce", CollectiveKind::all_reduce, group, bytes, Pass::update};
  };
  const auto scatter = [](GroupKind group, double bytes) {
    return Communication{"gradient reduce-scatter", CollectiveKind::reduce_scatter, group, bytes, Pass::update};
  };
  std::vector<Communication> calls;
  if (ranks > 1 && dense > 0) {
    if (!sharded) {
      calls.push_back(all_reduce(GroupKind::dp_cp, dense));
    } else if (copies() == 1) {
      calls.push_back(scatter(GroupKind::dp_cp, dense));
    } else {
      calls.push_back(scatter(GroupKind::shard, dense));
      calls.push_back(all_reduce(GroupKind::replicas, dense / shard_ranks));
    }
  }
  if (expert_ranks > 1 && own > 0) {
    calls.push_back(sharded ? scatter(GroupKind::edp, own) : all_reduce(GroupKind::edp, own));
    calls.back().name.insert(0, "expert ");
  }
  return calls;
}

std::vector<Communication> ReplicaSync::gathers(double parameters, double experts) const {
  const double dense = (parameters - experts) * weight_bytes / calls_per_unit, own = experts * weight_bytes / calls_per_unit;
  std::vector<Communication> calls;
  const auto add = [&](const char* name, GroupKind group, double bytes) {
    calls.push_back({name, CollectiveKind::all_gather, group, bytes, Pass::update});
  };
  if (ranks > 1 && dense > 0) add("parameter all-gather", copies() == 1 ? GroupKind::dp_cp : GroupKind::shard, dense);
  if (expert_ranks > 1 && own > 0) add("expert parameter all-gather", GroupKind::edp, own);
  return calls;
}

ReplicaSync replica_sync(const Workload& workload) {
  const int zero = workload.optimizer.zero_stage;
  ReplicaSync sync;
  const Parallel& parallel = workload.parallel;
  const int copies = ScheduleRegistry::get(workload.schedule).mirrors() ? 2 : 1;
  sync.ranks = parallel.dp * parallel.cp * copies;
  if (workload.model.moe) sync.expert_ranks = parallel.tp * parallel.cp * parallel.dp / (parallel.etp * parallel.ep) * copies;
  sync.shards_parameters = zero == 3;
  sync.reduce_each_microbatch = zero == 3 || (zero == 2 && workload.parallel.pp == 1);
  sync.overlap_gradients = workload.overlap.dp_gradients;
  sync.overlap_parameters = workload.overlap.dp_parameters;
  sync.shard_ranks = zero > 0 && workload.optimizer.shard_group > 0 ? workload.optimizer.shard_group : sync.ranks;
  sync.gathers_weights = zero == 1 || zero == 2;
  sync.gradient_bytes = bytes_of(workload.precision.gradients);
  sync.weight_bytes = bytes_of(workload.precision.weights);
  if (zero == 3 && workload.optimizer.by_tensor) {
    sync.overlap_gradients = sync.overlap_parameters = false;
    sync.calls_per_unit = layer_tensors(workload.model);
  }
  return sync;
}

double tied_embedding_bytes(const Workload& workload) {
  if (!workload.model.tied_embeddings || workload.model.vocab == 0 || ends_meet(workload)) return 0;
  return head_program(workload).parameters * bytes_of(workload.precision.gradients);
}

}  // namespace rehearse::workloads
