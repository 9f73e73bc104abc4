#include "sim/memory/allocator_peaks.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "sim/memory/allocator_time.hpp"
#include "sim/memory/nearest_known.hpp"
#include "sim/memory/stage_trainings.hpp"
#include "workloads/routing.hpp"

namespace rehearse::sim {

std::optional<AllocatorPeaks> allocator_peaks(const Job& job, int stage, double device_bytes) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return std::nullopt;
  const workloads::Compiled compiled = workloads::compile(job.workload);
  return TriedStage(job, compiled, stage).fullest(device_bytes);
}

struct AllocatorTrainings::Impl {
  Impl(const Job& its_job, const workloads::Compiled& its_compiled)
      : job(its_job),
        compiled(its_compiled),
        uneven(job.workload.model.moe && !workloads::RoutingRegistry::get(job.workload.experts.routing).even()) {}

  explicit Impl(std::unique_ptr<const NearestKnown> stands_in) : Impl(stands_in->job, stands_in->compiled) {
    nearest = std::move(stands_in);
  }

  const TriedStage& tried(int stage) { return stages.try_emplace(stage, job, compiled, stage).first->second; }

  // Ranks that get tokens of their own are trained when it is known which of a stage holds most.
  void begin() {
    if (uneven) return;
    for (int stage = 0; stage < std::ssize(compiled.stages); ++stage) tried(stage);
    under_way.emplace(stages, std::thread::hardware_concurrency());
  }

  // Each run when it is first asked for.
  const AllocatorPeaks& peaks(const RankMemory& rank, double device_bytes) {
    const std::pair<int, int> who = uneven ? std::pair(rank.rank, rank.step) : std::pair(0, 0);
    const auto [entry, is_new] = known.try_emplace({rank.stage, who, device_bytes});
    if (is_new && !uneven) entry->second = tried(rank.stage).fullest(device_bytes);
    if (is_new && uneven)
      entry->second = TriedStage(job, compiled, rank.stage, compiled.grid.expert_rank(rank.rank), rank.step).fullest(device_bytes);
    return entry->second;
  }

  void wait() {
    if (!under_way) return;
    for (const auto& [stage, fullest] : under_way->finish()) known[{stage, {0, 0}, StageTrainings::unlimited}] = fullest;
    under_way.reset();
  }

  void train(RankMemory& rank) {
    // The stack's own figures, which verdicts were fitted to, say what is needed.
    const bool formula_decides = job.system.software.memory.habits.order == workloads::TensorOrder::nanotron;
    rank.cache_simulated = true;
    rank.cached_bytes = peaks(rank, StageTrainings::unlimited).reserved - rank.tensor_bytes();
    rank.stuck_bytes = std::max(0.0, rank.cached_bytes);
    if (!rank.fits() && (rank.peak_bytes() <= rank.capacity_bytes || formula_decides)) train_within(rank);
    if (formula_decides) rank.stuck_bytes = 0;
  }

  // On a GPU of this size, where that ends, the allocator gives segments back on the way.
  void train_within(RankMemory& rank) {
    const AllocatorPeaks& within = peaks(rank, rank.capacity_bytes - rank.at_peak[MemoryUse::framework]);
    if (within.out_of_memory) return;
    rank.stuck_bytes = rank.capacity_bytes - rank.peak_bytes();
    rank.cached_bytes = within.reserved - rank.tensor_bytes();
    rank.returned_bytes = within.reserved - within.reserved_by_update;
    rank.retaken_bytes = within.retaken;
  }

  // Beyond a rank's own tensors a cache as that of the nearest model, in the room that what is not of that model leaves of the GPU: so
  // a model with more in it never needs less.
  void add_to(RankMemory& rank) {
    if (!nearest) return train(rank);
    RankMemory like = nearest->memory.ranks[static_cast<std::size_t>(rank.stage)];
    like.capacity_bytes -= rank.peak_bytes() - like.peak_bytes();
    train(like);
    take_cache(like, rank);
  }

  static void take_cache(const RankMemory& from, RankMemory& rank) {
    rank.cache_simulated = true;
    rank.cached_bytes = from.cached_bytes;
    rank.stuck_bytes = from.stuck_bytes;
    rank.returned_bytes = from.returned_bytes;
    rank.retaken_bytes = from.retaken_bytes;
  }

  // Of a stage's ranks with tokens of their own the fullest is trained; the others are taken to keep as much.
  void add_to(MemoryResult& memory) {
    std::map<int, RankMemory*> fullest;
    for (RankMemory& rank : memory.ranks) {
      RankMemory*& most = fullest[rank.stage];
      if (!uneven) {
        add_to(rank);
      } else if (most == nullptr || rank.peak_bytes() > most->peak_bytes()) {
        most = &rank;
      }
    }
    if (!uneven) return;
    for (const auto& [stage, most] : fullest) add_to(*most);
    for (RankMemory& rank : memory.ranks) take_cache(*fullest.at(rank.stage), rank);
  }

  std::unique_ptr<const NearestKnown> nearest;  // of which job and compiled are, where the order of the job's own tensors is not known
  const Job& job;
  const workloads::Compiled& compiled;
  std::map<int, TriedStage> stages;
  bool uneven;
  std::map<std::tuple<int, std::pair<int, int>, double>, AllocatorPeaks> known;  // by stage; of uneven ones rank and step
  std::optional<StageTrainings> under_way;
};

AllocatorTrainings::AllocatorTrainings(const Job& job) : job_(job) {
  if (knows_tensors(job.workload, job.system.software.memory.habits))
    own_ = std::make_unique<const workloads::Compiled>(workloads::compile(job.workload));
  train_on(own_.get());
}

AllocatorTrainings::AllocatorTrainings(const Job& job, const workloads::Compiled& compiled) : job_(job) {
  train_on(knows_tensors(job.workload, job.system.software.memory.habits) ? &compiled : nullptr);
}

void AllocatorTrainings::train_on(const workloads::Compiled* known) {
  if (known != nullptr) {
    impl_ = std::make_unique<Impl>(job_, *known);
  } else if (auto nearest = nearest_known(job_)) {
    impl_ = std::make_unique<Impl>(std::move(nearest));
  }
}

AllocatorTrainings::~AllocatorTrainings() = default;

void AllocatorTrainings::begin() {
  if (impl_) impl_->begin();
}

void AllocatorTrainings::add_to(MemoryResult& memory) {
  if (!impl_) return;
  impl_->wait();
  impl_->add_to(memory);
}

double AllocatorTrainings::add_to(StepResult& step) {
  add_to(step.memory);
  return add_allocator_time(job_, step);
}

StepResult with_allocator(const Job& job, const workloads::Compiled& compiled, StepResult step) {
  AllocatorTrainings(job, compiled).add_to(step);
  return step;
}

StepResult with_allocator(const Job& job, StepResult step) {
  AllocatorTrainings(job).add_to(step);
  return step;
}

}  // namespace rehearse::sim
