#include "sim/analytic/predict.hpp"

#include <algorithm>

#include "sim/analytic/offload_cost.hpp"
#include "sim/analytic/pipeline_formula.hpp"
#include "sim/analytic/replica_cost.hpp"
#include "sim/analytic/slot_walk.hpp"
#include "sim/engine/summary.hpp"
#include "sim/memory/predicted.hpp"
#include "workloads/rank_grid.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

PhaseTimes operator+(PhaseTimes a, const PhaseTimes& b) {
  for (std::size_t i = 0; i < phase_count; ++i) a.seconds[i] += b.seconds[i];
  return a;
}

class Prediction {
 public:
  Prediction(const Job& job, int step)
      : job_(job),
        model_(job.system.cluster, job.workload, job.system.simulation.algorithm, job.system.software.collectives),
        stages_(stage_costs(job, model_, step)) {
    const auto programs = workloads::stage_programs(job.workload);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      replicas_.emplace_back(job, stages_[s]);
      offload_.push_back(offload_cost(job, stages_[s], replicas_[s], programs[s], static_cast<int>(s)));
    }
  }

  StepResult result() const {
    StepResult result;
    result.method = "analytic";
    const PipelineTimes times = pipeline_times();
    const double core = pipeline_and_end_s(times);
    const double exposed_pp = core - pipeline_and_end_s(without_hops(times));
    const double start = start_s(times);
    result.step_s = job_.system.software.step_s + start + core;  // (14)
    for (int s = 0; s < stages(); ++s) result.ranks.push_back(rank_result(s, exposed_pp, start, result.step_s));
    result.step_seconds = {result.step_s};
    return result;
  }

 private:
  [[nodiscard]] int stages() const { return static_cast<int>(stages_.size()); }
  [[nodiscard]] const workloads::Schedule& schedule() const { return workloads::ScheduleRegistry::get(job_.workload.schedule); }
  [[nodiscard]] bool mirrors() const { return schedule().mirrors(); }

  // The pipeline and what follows it, by closed form where that is right.
  [[nodiscard]] double pipeline_and_end_s(const PipelineTimes& times) const {
    if (!is_uniform(times)) return walked_s(times);
    return PipelineFormulaRegistry::get(job_.workload.schedule).seconds(times) + end_s(times);
  }

  // (7), (8): seconds of each chunk.
  [[nodiscard]] PipelineTimes pipeline_times() const {
    PipelineTimes times;
    times.microbatches = job_.workload.microbatches();
    times.blocking = !job_.workload.overlap.pp;
    for (int s = 0; s < stages(); ++s) {
      times.hop_s.push_back(stages_[s].hop_s);
      if (job_.workload.overlap.ep) times.pairs.push_back(pairs(s));
      if (job_.workload.offload_activations) {
        times.early_forward_s.push_back(offload_[s].after_forward_s);
        times.early_backward_s.push_back(offload_[s].after_backward_s);
      }
      add_leads(s, times);
      for (auto* all : {&times.forward_s, &times.backward_s, &times.weight_s, &times.whole_s}) all->emplace_back();
      for (std::size_t c = 0; c < stages_[s].chunks.size(); ++c) {
        using Kind = workloads::Slot::Kind;
        const OffloadCost& copies = offload_[s];
        const bool split = schedule().splits_backward();
        times.forward_s[s].push_back(slot_s(s, c, Kind::forward) + copies.forward_s[c]);
        times.backward_s[s].push_back(slot_s(s, c, split ? Kind::backward_input : Kind::backward) + copies.backward_s[c]);
        times.weight_s[s].push_back(split ? slot_s(s, c, Kind::backward_weight) + copies.weight_s[c] : 0);
        times.whole_s[s].push_back(slot_s(s, c, Kind::backward) + copies.backward_s[c]);
      }
    }
    return times;
  }

  // Parameters of a slot's first unit are gathered while the stage waits for its message.
  void add_leads(int s, PipelineTimes& times) const {
    if (stages() == 1 || !replicas_[s].gathers_exposed()) return;
    times.lead_forward_s.emplace_back();
    times.lead_backward_s.emplace_back();
    for (const std::vector<UnitCost>& units : stages_[s].chunks) {
      times.lead_forward_s[s].push_back(units.empty() ? 0 : replicas_[s].exposed_gather_s(units.front()));
      times.lead_backward_s[s].push_back(units.empty() ? 0 : replicas_[s].exposed_gather_s(units.back()));
    }
  }

  [[nodiscard]] double slot_s(int s, std::size_t chunk, workloads::Slot::Kind kind) const {
    double sum = 0;
    for (const UnitCost& unit : stages_[s].chunks[chunk]) sum += unit.seconds(kind) + replicas_[s].exposed_s(unit, kind);
    return sum;
  }

  // Equation (22), [forward chunk][backward chunk].
  [[nodiscard]] std::vector<std::vector<PairTimes>> pairs(int s) const {
    const std::size_t chunks = stages_[s].chunks.size();
    std::vector<std::vector<PairTimes>> all(chunks);
    for (std::size_t forward = 0; forward < chunks; ++forward) {
      for (std::size_t backward = 0; backward < chunks; ++backward) all[forward].push_back(pair(s, forward, backward));
    }
    return all;
  }

  [[nodiscard]] PairTimes pair(int s, std::size_t forward_chunk, std::size_t backward_chunk) const {
    const auto& chunks = stages_[s].chunks;
    std::vector<std::vector<PieceTimes>> forward, backward;
    for (const UnitCost& unit : chunks[forward_chunk]) forward.push_back(unit.forward_pieces);
    double weight = 0;
    for (const UnitCost& unit : chunks[backward_chunk]) {
      backward.insert(backward.begin(), unit.backward_pieces);
      weight += unit.weight.total();
    }
    PairTimes times = paired(forward, backward, contention_of(job_.system.gpu, "ep"));
    times.seconds += weight;
    times.first_early_s += weight;
    return times;
  }

  // Chunks of a stage take turns, forward and backward in opposite order; the mean stands for them.
  [[nodiscard]] double mean_pair_s(int s) const {
    const std::size_t chunks = stages_[s].chunks.size();
    double sum = 0;
    for (std::size_t c = 0; c < chunks; ++c) sum += pair(s, c, chunks - 1 - c).seconds;
    return sum / static_cast<double>(chunks);
  }

  [[nodiscard]] static PipelineTimes without_hops(PipelineTimes times) {
    std::ranges::fill(times.hop_s, 0.0);
    return times;
  }

  // How much later than stage 0 a stage starts its first forward, and how much earlier it ends its last backward.
  // Mirrored pipelines fill from both ends.
  [[nodiscard]] double offset_s(const std::vector<std::vector<double>>& chunk_s, const PipelineTimes& times, int stage) const {
    double offset = 0;
    const int way = mirrors() ? std::min(stage, stages() - 1 - stage) : stage;
    for (int s = 0; s < way; ++s) offset += chunk_s[s].front() + times.hop_s[s];
    return offset;
  }

  // What the gathers of the last update's weights delay the pipeline by: the first forward goes through all stages one after another, and
  // is stretched where a stage still gathers.
  [[nodiscard]] double start_s(const PipelineTimes& times) const {
    double delay = 0;
    for (int s = 0; s < stages(); ++s) {
      const double arrival = offset_s(times.forward_s, times, s) + delay;
      const double waits = std::max(0.0, replicas_[s].at_start_s() - arrival);
      delay += s == 0 ? waits : std::max(waits, replicas_[s].first_forward_stretch_s(arrival));
    }
    return delay;
  }

  // (13): reduction, update, all-gather; later stages begin earlier. The last backward goes through all stages too, stretched by the
  // reductions that it hides; stage 0's own is part of its exposed reduction.
  [[nodiscard]] double end_s(const PipelineTimes& times) const {
    double longest = 0;
    for (int s = 0; s < stages(); ++s) {
      const bool meets_first = stages_[s].tied_s > 0;  // the tied embedding's gradients meet: the last stage waits for the first
      const double head_start = meets_first || mirrors() ? 0 : offset_s(times.backward_s, times, s);
      longest = std::max(longest, exchange_s(s) + stages_[s].update_s - head_start);
    }
    return stretch_s() + longest;
  }
  [[nodiscard]] double stretch_s() const {
    double sum = 0;
    for (int s = 1; s < stages(); ++s) sum += replicas_[s].last_backward_stretch_s();
    return sum;
  }

  // The same where each stage's own end is known. Replicas, and the two ends of the model where they share the embedding, wait for one
  // another.
  [[nodiscard]] double walked_s(const PipelineTimes& times) const {
    const std::vector<StageSpan> spans = walk_slots(job_.workload, times);
    std::vector<double> reduced;
    double tied = 0;
    for (int s = 0; s < stages(); ++s) {
      // The chunks of the mirrored stage are this one's the other way round.
      const StageSpan& mirror = spans[mirrors() ? stages() - 1 - s : s];
      const double start = schedule().staggers_steps() ? spans[s].start_s : 0, end = std::max(spans[s].end_s, mirror.end_s);
      std::vector<double> completed = spans[s].completed_s;
      for (std::size_t c = 0; mirrors() && c < completed.size(); ++c) {
        completed[c] = std::max(completed[c], mirror.completed_s[completed.size() - 1 - c]);
      }
      reduced.push_back(replicas_[s].reduced_s(completed, end) - start);
      if (stages_[s].tied_s > 0) tied = std::max(tied, reduced.back() + stages_[s].tied_s);
    }
    double longest = 0;
    for (int s = 0; s < stages(); ++s) {
      const double ready = stages_[s].tied_s > 0 ? tied : reduced[s];
      longest = std::max(longest, ready + stages_[s].update_s + replicas_[s].gather_at_end_s());
    }
    return stretch_s() + longest;
  }

  [[nodiscard]] double exchange_s(int s) const {
    return replicas_[s].reduce_at_end_s() + stages_[s].tied_s + replicas_[s].gather_at_end_s();
  }

  [[nodiscard]] RankResult rank_result(int s, double exposed_pp, double start, double step_s) const {
    RankResult rank;
    rank.stage = s;
    rank.rank = workloads::rank_grid(job_.workload).rank({0, 0, 0, s});
    rank.ranks = job_.system.gpus / stages();
    double exchange = 0, copies = 0;
    for (std::size_t c = 0; c < stages_[s].chunks.size(); ++c) {
      for (const UnitCost& unit : stages_[s].chunks[c]) rank.phases = rank.phases + unit.forward + unit.backward + unit.weight;
      exchange += exchange_s(s, c);
      copies += offload_[s].forward_s[c] + offload_[s].backward_s[c] + offload_[s].weight_s[c];
    }
    const int m = job_.workload.microbatches() / (mirrors() ? 2 : 1);                          // through each chunk
    const double alone = rank.phases.total() / static_cast<double>(stages_[s].chunks.size());  // of a chunk's forward and backward
    for (double& seconds : rank.phases.seconds) seconds *= m;
    if (job_.workload.overlap.ep) {
      const auto slots = static_cast<double>(m * stages_[s].chunks.size());
      double hidden =
          slots * std::max(0.0, alone - mean_pair_s(s));  // exchanges first, then other calls that leave the computation to the pair
      for (const Phase phase : {Phase::ep, Phase::tp, Phase::cp}) {
        const double part = std::min(hidden, rank.phases[phase]);
        rank.phases[phase] = std::max(0.0, rank.phases[phase] - part);
        hidden -= part;
      }
    }
    rank.phases[Phase::pp] = exposed_pp;
    rank.phases[Phase::offload] = m * copies;
    rank.phases[Phase::dp] = m * exchange + std::min(start, replicas_[s].at_start_s()) + exchange_s(s);
    rank.phases[Phase::optimizer] = stages_[s].update_s + job_.system.software.step_s;
    // What messages and exchange add to the step counts once, for the stage that sets the pace: another has less of it.
    double over = std::max(0.0, rank.phases.total() - step_s);
    for (const Phase phase : {Phase::pp, Phase::dp, Phase::offload}) {
      const double part = std::min(over, std::max(0.0, rank.phases[phase]));
      rank.phases[phase] -= part;
      over -= part;
    }
    rank.phases[Phase::bubble] = std::max(0.0, step_s - rank.phases.total());  // what is left of the step
    return rank;
  }

  // Exposed exchange of a chunk's slots for one micro-batch.
  [[nodiscard]] double exchange_s(int s, std::size_t chunk) const {
    using Kind = workloads::Slot::Kind;
    const bool twice = schedule().splits_backward() && !mirrors();  // mirrored schedules split few of their backwards
    double sum = 0;
    for (const UnitCost& unit : stages_[s].chunks[chunk]) {
      sum += replicas_[s].exposed_s(unit, Kind::forward) + replicas_[s].exposed_s(unit, twice ? Kind::backward_input : Kind::backward);
      if (twice) sum += replicas_[s].exposed_s(unit, Kind::backward_weight);
    }
    return sum;
  }

  const Job& job_;
  CommunicationModel model_;
  std::vector<StageCost> stages_;
  std::vector<ReplicaCost> replicas_;
  std::vector<OffloadCost> offload_;
};

}  // namespace

StepResult predict(const Job& job) {
  std::vector<StepResult> steps;
  for (int step = 0; step < job.distinct_steps(); ++step) steps.push_back(Prediction(job, step).result());
  StepResult result = mean_step(job, std::move(steps));
  result.memory = predicted_memory(job);
  finish_for(job, result);
  return result;
}

}  // namespace rehearse::sim
