#include "sim/analytic/predict.hpp"

#include <algorithm>
#include <numeric>

#include "sim/analytic/offload_cost.hpp"
#include "sim/analytic/pipeline_formula.hpp"
#include "sim/analytic/replica_cost.hpp"
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
      : job_(job), model_(job.cluster, job.workload, job.simulation.algorithm), stages_(stage_costs(job, model_, step)) {
    const auto programs = workloads::stage_programs(job.workload, Granularity::layer);
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      replicas_.emplace_back(job, stages_[s]);
      offload_.push_back(offload_cost(job, stages_[s], programs[s], static_cast<int>(s)));
    }
  }

  StepResult result() const {
    StepResult result;
    result.method = "analytic";
    const PipelineTimes times = pipeline_times();
    const double pipeline = formula().seconds(times);
    const double exposed_pp = pipeline - formula().seconds(without_hops(times));
    const double start = start_s(times);
    result.step_s = job_.software.step_s + start + pipeline + end_s(times);  // (14)
    for (int s = 0; s < stages(); ++s) result.ranks.push_back(rank_result(s, exposed_pp, start, result.step_s));
    result.step_seconds = {result.step_s};
    return result;
  }

 private:
  [[nodiscard]] int stages() const { return static_cast<int>(stages_.size()); }
  [[nodiscard]] bool mirrors() const { return workloads::ScheduleRegistry::get(job_.workload.schedule).mirrors(); }
  [[nodiscard]] const PipelineFormula& formula() const { return PipelineFormulaRegistry::get(job_.workload.schedule); }

  // (7), (8): seconds of each chunk.
  [[nodiscard]] PipelineTimes pipeline_times() const {
    PipelineTimes times;
    times.microbatches = job_.workload.microbatches();
    times.blocking = !job_.workload.overlap.pp;
    for (int s = 0; job_.workload.overlap.ep && s < stages(); ++s) times.pair_s.push_back(pair_s(s));
    for (int s = 0; s < stages(); ++s) {
      times.hop_s.push_back(stages_[s].hop_s);
      times.early_s.push_back((offload_[s].after_forward_s + offload_[(s + 1) % stages()].after_backward_s) / 2);
      auto& forward = times.forward_s.emplace_back();
      auto& backward = times.backward_s.emplace_back();
      auto& weight = times.weight_s.emplace_back();
      for (std::size_t c = 0; c < stages_[s].chunks.size(); ++c) {
        PhaseTimes f, b, w;
        for (const UnitCost& unit : stages_[s].chunks[c]) {
          f = f + unit.forward;
          b = b + unit.backward;
          w = w + unit.weight;
        }
        weight.push_back(w.total() + offload_[s].weight_s[c]);
        forward.push_back(f.total() + replicas_[s].per_forward_s(c) + offload_[s].forward_s[c]);
        backward.push_back(b.total() + replicas_[s].per_backward_s(c) + offload_[s].backward_s[c]);
      }
    }
    return times;
  }

  // Equation (22). Chunks of a stage take turns, forward and backward in opposite order; the mean stands for them.
  [[nodiscard]] double pair_s(int s) const {
    const auto& chunks = stages_[s].chunks;
    double sum = 0;
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      std::vector<std::vector<PieceTimes>> forward, backward;
      for (const UnitCost& unit : chunks[c]) forward.push_back(unit.forward_pieces);
      for (const UnitCost& unit : chunks[chunks.size() - 1 - c]) backward.insert(backward.begin(), unit.backward_pieces);
      double weight = 0;
      for (const UnitCost& unit : chunks[chunks.size() - 1 - c]) weight += unit.weight.total();
      sum += paired_s(forward, backward, contention_of(job_.gpu, "ep")) + weight;
    }
    return sum / static_cast<double>(chunks.size());
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
    double stretch = 0;
    for (int s = 1; s < stages(); ++s) stretch += replicas_[s].last_backward_stretch_s();
    double longest = 0;
    for (int s = 0; s < stages(); ++s) {
      const bool meets_first = stages_[s].tied_s > 0;  // the tied embedding's gradients meet: the last stage waits for the first
      const double head_start = meets_first || mirrors() ? 0 : offset_s(times.backward_s, times, s);
      longest = std::max(longest, exchange_s(s) + stages_[s].update_s - head_start);
    }
    return stretch + longest;
  }

  [[nodiscard]] double exchange_s(int s) const {
    return replicas_[s].reduce_at_end_s() + stages_[s].tied_s + replicas_[s].gather_at_end_s();
  }

  [[nodiscard]] RankResult rank_result(int s, double exposed_pp, double start, double step_s) const {
    RankResult rank;
    rank.stage = s;
    rank.rank = workloads::rank_grid(job_.workload).rank({0, 0, 0, s});
    rank.ranks = job_.gpus / stages();
    double exchange = 0, copies = 0;
    for (std::size_t c = 0; c < stages_[s].chunks.size(); ++c) {
      for (const UnitCost& unit : stages_[s].chunks[c]) rank.phases = rank.phases + unit.forward + unit.backward + unit.weight;
      exchange += replicas_[s].per_forward_s(c) + replicas_[s].per_backward_s(c);
      copies += offload_[s].forward_s[c] + offload_[s].backward_s[c] + offload_[s].weight_s[c];
    }
    const int m = job_.workload.microbatches() / (mirrors() ? 2 : 1);                          // through each chunk
    const double alone = rank.phases.total() / static_cast<double>(stages_[s].chunks.size());  // of a chunk's forward and backward
    for (double& seconds : rank.phases.seconds) seconds *= m;
    if (job_.workload.overlap.ep) {
      const auto slots = static_cast<double>(m * stages_[s].chunks.size());
      double hidden = slots * std::max(0.0, alone - pair_s(s));  // exchanges first, then other calls that leave the computation to the pair
      for (const Phase phase : {Phase::ep, Phase::tp, Phase::cp}) {
        const double part = std::min(hidden, rank.phases[phase]);
        rank.phases[phase] = std::max(0.0, rank.phases[phase] - part);
        hidden -= part;
      }
    }
    rank.phases[Phase::pp] = exposed_pp;
    rank.phases[Phase::offload] = m * copies;
    rank.phases[Phase::dp] = m * exchange + std::min(start, replicas_[s].at_start_s()) + exchange_s(s);
    rank.phases[Phase::optimizer] = stages_[s].update_s + job_.software.step_s;
    // What is left of the step. Rounding may leave a last bit below zero where there is none.
    rank.phases[Phase::bubble] = std::max(0.0, step_s - rank.phases.total());
    return rank;
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
