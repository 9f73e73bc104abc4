#include "workloads/stage_program.hpp"

#include <algorithm>
#include <map>

namespace rehearse::workloads {
namespace {

std::vector<Segment> one_by_one(const std::vector<Item>& items) {
  std::vector<Segment> segments;
  for (const Item& item : items) {
    if (const auto* op = std::get_if<Operator>(&item)) {
      segments.emplace_back(ComputeSegment{{*op}, 1, op->name});
    } else if (const auto* call = std::get_if<Communication>(&item)) {
      segments.emplace_back(CallSegment{*call, 1});
    } else {
      segments.emplace_back(RingSegment{std::get<RingAttention>(item), 1});
    }
  }
  return segments;
}

// Collects the items between two ring attentions: computation first, then each kind of collective once with its count.
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

std::vector<Segment> together(const std::vector<Item>& items, int layers) {
  std::vector<Segment> segments;
  Run run(layers);
  for (const Item& item : items) {
    if (const auto* op = std::get_if<Operator>(&item)) {
      run.add(*op);
    } else if (const auto* call = std::get_if<Communication>(&item)) {
      run.add(*call);
    } else {
      run.flush(segments);
      segments.emplace_back(RingSegment{std::get<RingAttention>(item), layers});
    }
  }
  run.flush(segments);
  return segments;
}

std::shared_ptr<const UnitProgram> compile(const BlockProgram& block, Granularity granularity, int layers) {
  const auto segments = [&](const std::vector<Item>& items) {
    return granularity == Granularity::op ? one_by_one(items) : together(items, layers);
  };
  return std::make_shared<const UnitProgram>(
      UnitProgram{segments(block.forward), segments(block.recompute), segments(block.backward), block.parameters * layers});
}

// Compiles each distinct (recomputed, layer count) once.
class LayerPrograms {
 public:
  LayerPrograms(const Workload& workload, Granularity granularity) : workload_(workload), granularity_(granularity) {}
  std::shared_ptr<const UnitProgram> get(bool recomputed, int layers) {
    auto& program = programs_[{recomputed, layers}];
    if (!program) program = compile(layer_program(workload_, recomputed), granularity_, layers);
    return program;
  }

 private:
  const Workload& workload_;
  Granularity granularity_;
  std::map<std::pair<bool, int>, std::shared_ptr<const UnitProgram>> programs_;
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
    const int alike = recomputed ? std::min(full_left, chunk.layers - done) : chunk.layers - done;
    const int layers = granularity == Granularity::stage ? alike : 1;
    units.push_back({programs.get(recomputed, layers), layer_name(chunk.first_layer + done, layers), chunk.first_layer + done});
    if (recomputed) full_left -= layers;
    done += layers;
  }
}

double parameters_of(const StageProgram& stage) {
  double sum = 0;
  for (const auto& units : stage.chunks)
    for (const Unit& unit : units) sum += unit.program->parameters;
  return sum;
}

}  // namespace

std::vector<StageProgram> stage_programs(const Workload& workload, Granularity granularity) {
  LayerPrograms layers(workload, granularity);
  std::shared_ptr<const UnitProgram> embedding, head;
  if (workload.model.vocab > 0) {
    embedding = compile(embedding_program(workload), granularity, 1);
    head = compile(head_program(workload), granularity, 1);
  }
  std::vector<StageProgram> stages;
  for (const std::vector<Chunk>& chunks : split_layers(workload)) {
    StageProgram& stage = stages.emplace_back();
    int full_left = workload.recompute.full_layers < 0 ? workload.model.layers : workload.recompute.full_layers;
    for (const Chunk& chunk : chunks) {
      std::vector<Unit>& units = stage.chunks.emplace_back();
      if (chunk.embedding && embedding) units.push_back({embedding, "embedding", -1});
      add_layers(workload, granularity, chunk, full_left, layers, units);
      if (chunk.head && head) units.push_back({head, "head", -1});
    }
    stage.parameters = parameters_of(stage);
    const bool sharded = workload.optimizer.zero_stage > 0;
    stage.update = optimizer_program(workload, stage.parameters / (sharded ? replica_sync(workload).ranks : 1)).update;
  }
  return stages;
}

ReplicaSync replica_sync(const Workload& workload) {
  const int zero = workload.optimizer.zero_stage;
  ReplicaSync sync;
  sync.ranks = workload.parallel.dp * workload.parallel.cp;
  sync.shards_parameters = zero == 3;
  sync.reduce_each_microbatch = zero == 3 || (zero == 2 && workload.parallel.pp == 1);
  sync.overlap_gradients = workload.overlap.dp_gradients;
  sync.overlap_parameters = workload.overlap.dp_parameters;
  sync.reduction = zero == 0 ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  sync.gathers_weights = zero == 1 || zero == 2;
  sync.gradient_bytes = bytes_of(workload.precision.gradients);
  sync.weight_bytes = bytes_of(workload.precision.weights);
  return sync;
}

double tied_embedding_bytes(const Workload& workload) {
  if (!workload.model.tied_embeddings || workload.parallel.pp == 1 || workload.model.vocab == 0) return 0;
  return head_program(workload).parameters * bytes_of(workload.precision.gradients);
}

}  // namespace rehearse::workloads
