#include "sim/tune/worker.hpp"

#include <algorithm>

#include "sim/memory/ranks_at_rest.hpp"
#include "sim/memory/tune_chunks.hpp"

namespace rehearse::sim {
namespace {

constexpr std::size_t most_steps = 1'000'000;  // of pipelines whose order is remembered: some tens of megabytes
constexpr int most_kept_plans = 128;           // of plans whose prices are: those that share them follow one another

Evaluation evaluate(Evaluator& evaluator, const Job& job) {
  const bool chunks_to_tune = job.workload.model.moe && job.workload.experts.chunks == 0;
  return evaluator.without_phases(chunks_to_tune ? tuned(job).workload : job.workload);
}

}  // namespace

Evaluator& Base::evaluator() {
  if (evaluator_ == nullptr || evaluator_->steps_held() > most_steps) evaluator_ = std::make_unique<Evaluator>(job);
  if (++evaluations_ % most_kept_plans == 0) evaluator_->forget_plans();
  return *evaluator_;
}

Worth Base::worth(const Cursor& cursor, const GoalValues& goals, double memory_share) {
  const Job& at = cursor.job();
  const Evaluation evaluation = evaluate(evaluator(), at);
  Worth worth;
  Candidate& candidate = worth.candidate;
  candidate.point = cursor.point();
  candidate.step_s = evaluation.step_s;
  candidate.peak_bytes = evaluation.peak_bytes;
  candidate.needed_bytes = evaluation.needed_bytes;
  candidate.layout = layout_of(at.workload, at.system.gpus);
  candidate.dp = at.workload.parallel.dp;
  candidate.lacks_bytes = std::max(0.0, evaluation.needed_bytes - most_bytes(memory_share));
  if (evaluation.fits && evaluation.needed_bytes <= memory_share * usable_bytes(job.system.gpu))
    worth.fit = candidate.lacks_bytes == 0 ? Fit::yes : Fit::may_run_out;
  if (!worth.fits()) return worth;
  try {
    candidate.goals = goals.of(at, evaluation.step_s, evaluation.needed_bytes);
  } catch (const config::InputError&) {
    worth.too_long = true;
  }
  return worth;
}

double Base::most_bytes(double memory_share) const { return memory_share * usable_bytes(job.system.gpu) / margin_; }

Base& Bases::of(std::uint64_t point) {
  const std::uint64_t base = point / space_.points_below(space_.base_axes());
  const auto known = known_.find(base);
  if (known != known_.end()) return *known->second;
  if (known_.size() == most_) known_.clear();
  return *known_.emplace(base, std::make_unique<Base>(space_, point, errors_)).first->second;
}

}  // namespace rehearse::sim
