#include "sim/analytic/stage_cost.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "sim/analytic/overlap.hpp"
#include "workloads/expert_layer.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/stage_program.hpp"

namespace rehearse::sim {
namespace {

using workloads::CollectiveKind;
using workloads::Communication;
using workloads::GroupKind;

class StageCoster {
 public:
  StageCoster(const Job& job, const CommunicationModel& model, const workloads::RankGrid& grid, int stage,
              const std::optional<workloads::ExpertLayer>& experts)
      : job_(job),
        model_(model),
        grid_(grid),
        sync_(workloads::replica_sync(job.workload)),
        rank_(grid.rank({0, 0, 0, stage})),
        experts_(experts) {}

  StageCost cost(const workloads::StageProgram& program) {
    StageCost cost;
    for (const auto& units : program.chunks) {
      auto& chunk = cost.chunks.emplace_back();
      for (const workloads::Unit& unit : units) chunk.push_back(unit_cost(unit));
    }
    cost.hop_s = hop_s();
    cost.gather_s = gather_s(program.parameters, program.expert_parameters);
    cost.reduce_s = reduce_s(program.parameters, program.expert_parameters);
    cost.tied_s = tied_s();
    for (const workloads::Operator& op : program.update) cost.update_s += seconds(op);
    if (program.on_host.happens()) cost.update_s += host_update_s(program.on_host);
    return cost;
  }

 private:
  [[nodiscard]] double seconds(const workloads::Operator& op) const { return operator_seconds(job_.system.gpu, job_.system.software, op); }
  [[nodiscard]] double seconds(const Communication& what) const { return model_.price(what, grid_.group(what.group, rank_)).seconds(); }

  [[nodiscard]] double seconds(const workloads::ComputeSegment& segment) const {
    double calls_s = 0;
    for (const Communication& call : segment.queue->calls) calls_s += seconds(call);
    const int calls = static_cast<int>(segment.queue->calls.size());
    return queued_seconds(job_.system.gpu, job_.system.software, segment.operators, segment.queue->operators, calls_s, calls);
  }

  // Layers whose experts get different tokens, or chunks, differ.
  UnitCost unit_cost(const workloads::Unit& unit) {
    const workloads::UnitProgram& program = *unit.program;
    const bool own = unit.layer_kind == workloads::LayerKind::experts;
    const auto [it, added] = units_.try_emplace({&program, own ? unit.first_layer : -1});
    if (!added) return it->second;
    UnitCost& cost = it->second;
    layer_ = unit.first_layer;
    pieces_ = &cost.forward_pieces;
    in_dense_ = false;
    add(program.forward, Phase::compute, cost.forward);
    pieces_ = &cost.backward_pieces;
    in_dense_ = false;
    add(program.recompute, Phase::recompute, cost.backward);
    const bool split = !program.backward_input.empty() || !program.backward_weight.empty();
    add(split ? program.backward_input : program.backward, Phase::compute, cost.backward);
    pieces_ = nullptr;
    add(program.backward_weight, Phase::compute, cost.weight);
    cost.gather_s = gather_s(program.parameters, program.expert_parameters);
    cost.reduce_s = reduce_s(program.parameters, program.expert_parameters);
    if (program.offloaded_bytes > 0) {
      const double bytes = program.offloaded_bytes + program.offloaded_per_pair * (own ? most_pairs(unit.first_layer) : 0);
      cost.copy_s = seconds({"", CollectiveKind::send_recv, GroupKind::to_host, bytes, workloads::Pass::forward});
    }
    return cost;
  }

  void add(const std::vector<workloads::Segment>& segments, Phase phase, PhaseTimes& to) {
    for (const workloads::Segment& segment : segments) {
      const double before = to.total();
      const bool experts = std::holds_alternative<workloads::ExpertSegment>(segment);
      if (pieces_ != nullptr && (experts || !in_dense_)) pieces_->push_back({});
      add(segment, phase, to);
      if (pieces_ != nullptr && !experts) {
        PieceTimes& piece = pieces_->back();
        (std::holds_alternative<workloads::CallSegment>(segment) ? piece.calls_s : piece.compute_s) += to.total() - before;
      }
      in_dense_ = !experts;
    }
  }

  void add(const workloads::Segment& segment, Phase phase, PhaseTimes& to) const {
    if (const auto* c = std::get_if<workloads::ComputeSegment>(&segment)) {
      to[phase] += seconds(*c);
    } else if (const auto* call = std::get_if<workloads::CallSegment>(&segment)) {
      to[call->what.group == GroupKind::cp ? Phase::cp : Phase::tp] += seconds(call->what) * call->repeat;
    } else if (const auto* ring = std::get_if<workloads::RingSegment>(&segment)) {
      add_ring(*ring, phase, to);
    } else if (const auto* split = std::get_if<workloads::SplitSegment>(&segment)) {
      add_split(*split, phase, to);
    } else if (const auto* expert = std::get_if<workloads::ExpertSegment>(&segment)) {
      add_experts(expert->experts, phase, to);
    } else {
      add_beside(std::get<workloads::BesideSegment>(segment), phase, to);
    }
  }

  // Equation (20): one piece of the collective alone, n - 1 pieces of both together, one piece of the product alone.
  void add_split(const workloads::SplitSegment& segment, Phase phase, PhaseTimes& to) const {
    const double product = seconds(segment.product);
    const double collective = seconds(segment.collective);
    const int beside = segment.splits - 1;
    const double total = collective + overlapped_s(beside * product, beside * collective, contention_of(job_.system.gpu, "tp")) + product;
    to[phase] += segment.splits * product;
    to[Phase::tp] += total - segment.splits * product;
  }

  void add_beside(const workloads::BesideSegment& segment, Phase phase, PhaseTimes& to) const {
    const double product = seconds(segment.product);
    const double collective = seconds(segment.collective);
    to[phase] += product;
    to[Phase::tp] += overlapped_s(product, collective, contention_of(job_.system.gpu, "tp")) - product;
  }

  // Equation (21): c - 1 steps beside a transfer, and the last one alone.
  void add_ring(const workloads::RingSegment& segment, Phase phase, PhaseTimes& to) const {
    const int steps = job_.workload.parallel.cp;
    const double attention = seconds(segment.ring.step);
    const Communication block{"", CollectiveKind::send_recv, GroupKind::cp, segment.ring.block_bytes, segment.ring.pass};
    const double transfer = seconds(block);
    const ContentionPair pair = contention_of(job_.system.gpu, "cp");
    const double together = job_.workload.overlap.cp ? overlapped_s(attention, transfer, pair) : attention + transfer;
    const double total = (steps - 1) * together + attention;
    to[phase] += steps * attention;
    to[Phase::cp] += total - steps * attention;
  }

  // Equation (28).
  [[nodiscard]] double host_update_s(const workloads::HostUpdate& host) const {
    const auto copy = [&](GroupKind way, double bytes) {
      return seconds({"", CollectiveKind::send_recv, way, bytes, workloads::Pass::update});
    };
    return copy(GroupKind::to_host, host.gradients) + copy(GroupKind::host_memory, host.moved) + copy(GroupKind::from_host, host.weights);
  }
  [[nodiscard]] double seconds(const std::vector<workloads::Operator>& operators) const {
    double sum = 0;
    for (const workloads::Operator& op : operators) sum += seconds(op);
    return sum;
  }
  [[nodiscard]] double seconds(const std::vector<Communication>& calls) const {
    double sum = 0;
    for (const Communication& what : calls) sum += seconds(what);
    return sum;
  }

  // Pairs that the hottest rank's experts get, in the mean micro-batch.
  [[nodiscard]] double most_pairs(int layer) const {
    const workloads::ExpertLoads& loads = experts_->loads();
    const int microbatches = loads.even() ? 1 : job_.workload.microbatches(), ranks = loads.even() ? 1 : job_.workload.parallel.ep;
    double sum = 0;
    for (int i = 0; i < microbatches; ++i) {
      double most = 0;
      for (int rank = 0; rank < ranks; ++rank) most = std::max(most, loads.received(rank, layer, i));
      sum += most;
    }
    return sum / microbatches;
  }

  // Micro-batches and ranks that get different tokens: the ranks of a group wait for the one that takes longest, micro-batches follow one
  // another and count with their mean.
  void add_experts(const workloads::RoutedExperts& what, Phase phase, PhaseTimes& to) const {
    const bool even = experts_->loads().even();
    const int microbatches = even ? 1 : job_.workload.microbatches(), ranks = even ? 1 : job_.workload.parallel.ep;
    for (int i = 0; i < microbatches; ++i) {
      ChunkTimes slowest;
      for (int rank = 0; rank < ranks; ++rank) slowest.raise_to(chunk_times(experts_->chunk(what, rank, layer_, i)));
      const double total = chunked_s(slowest, contention_of(job_.system.gpu, "ep")) / microbatches;
      const double again = slowest.chunks * slowest.recompute_s / microbatches, work = slowest.chunks * slowest.work_s / microbatches;
      if (pieces_ != nullptr) {
        PieceTimes& piece = pieces_->back();
        piece.dispatch_s += slowest.chunks * slowest.dispatch_s / microbatches;
        piece.compute_s += again + work;
        piece.combine_s += slowest.chunks * slowest.combine_s / microbatches;
      }
      to[Phase::recompute] += again;
      to[phase] += work;
      to[Phase::ep] += total - again - work;
    }
  }

  [[nodiscard]] ChunkTimes chunk_times(const workloads::ExpertChunk& chunk) const {
    return {chunk.chunks, seconds(chunk.dispatch), seconds(chunk.recompute), seconds(chunk.work), seconds(chunk.combine)};
  }

  [[nodiscard]] double gather_s(double parameters, double experts) const {
    return sync_.shards_parameters || sync_.gathers_weights ? sync_.calls_per_unit * seconds(sync_.gathers(parameters, experts)) : 0;
  }
  [[nodiscard]] double reduce_s(double parameters, double experts) const {
    return sync_.calls_per_unit * seconds(sync_.reductions(parameters, experts));
  }

  [[nodiscard]] double tied_s() const {
    const double bytes = workloads::tied_embedding_bytes(job_.workload);
    const int stage = grid_.coordinates(rank_).pp;
    if (bytes == 0 || (stage != 0 && stage + 1 != job_.workload.parallel.pp)) return 0;
    return seconds({"", CollectiveKind::all_reduce, GroupKind::embedding, bytes, workloads::Pass::update});
  }

  // The slowest of the replicas' hops: some may stay in a node while others do not.
  [[nodiscard]] double hop_s() const {
    if (job_.workload.parallel.pp == 1) return 0;
    const Communication message{"", CollectiveKind::send_recv, GroupKind::pp, workloads::pipeline_message_bytes(job_.workload),
                                workloads::Pass::forward};
    double slowest = 0;
    workloads::Coordinates at = grid_.coordinates(rank_);
    for (at.dp = 0; at.dp < job_.workload.parallel.dp; ++at.dp) {
      const int from = grid_.rank(at);
      slowest = std::max(slowest, model_.price(message, std::array{from, grid_.next_stage(from)}).seconds());
    }
    return slowest;
  }

  const Job& job_;
  const CommunicationModel& model_;
  const workloads::RankGrid& grid_;
  workloads::ReplicaSync sync_;
  int rank_;
  const std::optional<workloads::ExpertLayer>& experts_;
  int layer_ = -1;                             // of the unit at hand
  std::vector<PieceTimes>* pieces_ = nullptr;  // of the pass at hand
  bool in_dense_ = false;                      // its last piece is none of experts
  std::map<std::pair<const workloads::UnitProgram*, int>, UnitCost> units_;
};

}  // namespace

double UnitCost::seconds(workloads::Slot::Kind slot) const {
  switch (slot) {
    case workloads::Slot::Kind::forward:
      return forward.total();
    case workloads::Slot::Kind::backward:
      return backward.total() + weight.total();
    case workloads::Slot::Kind::backward_input:
      return backward.total();
    case workloads::Slot::Kind::backward_weight:
      break;
  }
  return weight.total();
}

std::vector<StageCost> stage_costs(const Job& job, const CommunicationModel& model, int step) {
  const workloads::RankGrid grid = workloads::rank_grid(job.workload);
  const std::vector<workloads::StageProgram> programs = workloads::stage_programs(job.workload);
  std::optional<workloads::ExpertLayer> experts;
  if (job.workload.model.moe) experts.emplace(job.workload, step);
  std::vector<StageCost> costs;
  for (int stage = 0; stage < static_cast<int>(programs.size()); ++stage) {
    costs.push_back(StageCoster(job, model, grid, stage, experts).cost(programs[stage]));
  }
  return costs;
}

}  // namespace rehearse::sim
