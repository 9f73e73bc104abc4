#include "sim/tune/worker.hpp"

#include <algorithm>

#include "sim/memory/framework.hpp"
#include "sim/memory/tune_chunks.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t most_bases_kept = 64;  // a job is some hundred kilobytes
constexpr double most_slots = 1e6;           // of pipelines whose order is remembered: some tens of megabytes
constexpr int most_evaluations = 4096;       // of plans whose prices are

Evaluation evaluate(Evaluator& evaluator, const Job& job) {
  const bool chunks_to_tune = job.workload.model.moe && job.workload.experts.chunks == 0;
  return evaluator(chunks_to_tune ? tuned(job).workload : job.workload);
}

}  // namespace

Evaluator& Base::evaluator_for(const workloads::Workload& workload) {
  const workloads::PipelineShape shape = workloads::pipeline_shape(workload);
  const double slots = 2.0 * shape.stages * shape.chunks * shape.microbatches;
  if (shapes_.insert({workload.schedule, shape.stages, shape.chunks, shape.microbatches}).second) slots_ += slots;
  if (evaluator_ == nullptr || slots_ > most_slots || ++evaluations_ > most_evaluations) {
    evaluator_ = std::make_unique<Evaluator>(job);
    shapes_.clear();
    slots_ = slots;
    evaluations_ = 0;
  }
  return *evaluator_;
}

Worth Base::worth(const Cursor& cursor, const GoalValues& goals, double memory_share) {
  const Job& at = cursor.job();
  const Evaluation evaluation = evaluate(evaluator_for(at.workload), at);
  Worth worth;
  Candidate& candidate = worth.candidate;
  candidate.point = cursor.point();
  candidate.step_s = evaluation.step_s;
  candidate.peak_bytes = evaluation.peak_bytes;
  candidate.layout = layout_of(at.workload, at.system.gpus);
  candidate.dp = at.workload.parallel.dp;
  candidate.lacks_bytes = std::max(0.0, evaluation.needed_bytes - memory_share * usable_bytes(at.system.gpu));
  worth.fits = evaluation.fits && candidate.lacks_bytes == 0;
  if (!worth.fits) return worth;
  try {
    candidate.goals = goals.of(at, evaluation.step_s, evaluation.peak_bytes);
  } catch (const config::InputError&) {
    worth.too_long = true;
  }
  return worth;
}

Base& Bases::of(std::uint64_t point) {
  const std::uint64_t base = point / space_.points_below(space_.base_axes());
  const auto known = known_.find(base);
  if (known != known_.end()) return *known->second;
  if (known_.size() == most_bases_kept) known_.clear();
  return *known_.emplace(base, std::make_unique<Base>(space_, point)).first->second;
}

}  // namespace rehearse::sim
