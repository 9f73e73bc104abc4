#include "sim/memory/allocator_peaks.hpp"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "sim/memory/stage_trainings.hpp"

namespace rehearse::sim {

std::optional<AllocatorPeaks> allocator_peaks(const Job& job, int stage, double device_bytes) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return std::nullopt;
  const workloads::Compiled compiled = workloads::compile(job.workload);
  return TriedStage(job, compiled, stage).fullest(device_bytes);
}

struct AllocatorTrainings::Impl {
  Impl(const Job& its_job, const workloads::Compiled& its_compiled) : job(its_job), compiled(its_compiled) {}

  const TriedStage& tried(int stage) { return stages.try_emplace(stage, job, compiled, stage).first->second; }

  void begin() {
    for (int stage = 0; stage < std::ssize(compiled.stages); ++stage) tried(stage);
    under_way.emplace(stages, std::thread::hardware_concurrency());
  }

  // Each run when it is first asked for.
  const AllocatorPeaks& peaks(int stage, double device_bytes) {
    const auto [entry, is_new] = known.try_emplace({stage, device_bytes});
    if (is_new) entry->second = tried(stage).fullest(device_bytes);
    return entry->second;
  }

  void wait() {
    if (!under_way) return;
    for (const auto& [stage, fullest] : under_way->finish()) known[{stage, StageTrainings::unlimited}] = fullest;
    under_way.reset();
  }

  void add_to(RankMemory& rank) {
    // The stack's own figures, which verdicts were fitted to, say what is needed.
    const bool formula_decides = job.system.software.memory.habits.order == workloads::TensorOrder::nanotron;
    rank.cache_simulated = true;
    rank.cached_bytes = peaks(rank.stage, StageTrainings::unlimited).reserved - rank.tensor_bytes();
    rank.stuck_bytes = formula_decides ? 0 : std::max(0.0, rank.cached_bytes);
    if (rank.fits() || rank.peak_bytes() > rank.capacity_bytes) return;
    const double left = rank.capacity_bytes - rank.at_peak[MemoryUse::framework];
    if (!peaks(rank.stage, left).out_of_memory) rank.stuck_bytes = rank.capacity_bytes - rank.peak_bytes();
  }

  const Job& job;
  const workloads::Compiled& compiled;
  std::map<int, TriedStage> stages;
  std::map<std::pair<int, double>, AllocatorPeaks> known;
  std::optional<StageTrainings> under_way;
};

AllocatorTrainings::AllocatorTrainings(const Job& job) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return;
  own_ = std::make_unique<const workloads::Compiled>(workloads::compile(job.workload));
  impl_ = std::make_unique<Impl>(job, *own_);
}

AllocatorTrainings::AllocatorTrainings(const Job& job, const workloads::Compiled& compiled)
    : impl_(knows_tensors(job.workload, job.system.software.memory.habits) ? std::make_unique<Impl>(job, compiled) : nullptr) {}

AllocatorTrainings::~AllocatorTrainings() = default;

void AllocatorTrainings::begin() {
  if (impl_) impl_->begin();
}

void AllocatorTrainings::add_to(MemoryResult& memory) {
  if (!impl_) return;
  impl_->wait();
  for (RankMemory& rank : memory.ranks) impl_->add_to(rank);
}

void add_allocator(const Job& job, std::initializer_list<MemoryResult*> memories) {
  AllocatorTrainings trainings(job);
  for (MemoryResult* memory : memories) trainings.add_to(*memory);
}

void add_allocator(const Job& job, const workloads::Compiled& compiled, std::initializer_list<MemoryResult*> memories) {
  AllocatorTrainings trainings(job, compiled);
  for (MemoryResult* memory : memories) trainings.add_to(*memory);
}

}  // namespace rehearse::sim
