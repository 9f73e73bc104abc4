#include "sim/memory/allocator_peaks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/memory/allocator_training.hpp"

namespace rehearse::sim {
namespace {

constexpr int most_shards = 4;  // each is a training of its own

AllocatorPeaks fullest(const Job& job, const workloads::Compiled& compiled, int stage, double device_bytes) {
  const TrainedStage what(job.workload, job.system.software.memory.habits, stage, compiled.stages[static_cast<std::size_t>(stage)]);
  const int shards = job.workload.optimizer.zero_stage > 0 ? compiled.sync.shard_ranks : 1;
  const int tried = std::min(shards, most_shards);
  AllocatorPeaks most;
  std::set<std::vector<double>> known;
  for (int i = 0; i < tried; ++i) {
    const int shard = tried == 1 ? 0 : i * (shards - 1) / (tried - 1);
    const auto [own, is_new] = known.insert(parameters_of_shard(what, shard, shards));
    if (!is_new) continue;
    const AllocatorPeaks peaks = trained(what, *own, device_bytes);
    if (peaks.out_of_memory) return peaks;
    if (peaks.reserved > most.reserved) most = peaks;
  }
  return most;
}

// No GPU is that large.
constexpr double unlimited = 1e15;

}  // namespace

std::optional<AllocatorPeaks> allocator_peaks(const Job& job, int stage, double device_bytes) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return std::nullopt;
  return fullest(job, workloads::compile(job.workload), stage, device_bytes);
}

struct AllocatorTrainings::Impl {
  Impl(const Job& its_job, const workloads::Compiled& its_compiled) : job(its_job), compiled(its_compiled) {}

  // Each run when it is first asked for.
  const AllocatorPeaks& peaks(int stage, double device_bytes) {
    const auto [entry, is_new] = known.try_emplace({stage, device_bytes});
    if (is_new) entry->second = fullest(job, compiled, stage, device_bytes);
    return entry->second;
  }

  void add_to(RankMemory& rank) {
    // The stack's own figures, which verdicts were fitted to, say what is needed.
    const bool formula_decides = job.system.software.memory.habits.order == workloads::TensorOrder::nanotron;
    rank.cached_bytes = peaks(rank.stage, unlimited).reserved - rank.tensor_bytes();
    rank.stuck_bytes = formula_decides ? 0 : std::max(0.0, rank.cached_bytes);
    if (rank.fits() || rank.peak_bytes() > rank.capacity_bytes) return;
    const double left = rank.capacity_bytes - rank.at_peak[MemoryUse::framework];
    if (!peaks(rank.stage, left).out_of_memory) rank.stuck_bytes = rank.capacity_bytes - rank.peak_bytes();
  }

  const Job& job;
  const workloads::Compiled& compiled;
  std::map<std::pair<int, double>, AllocatorPeaks> known;
};

AllocatorTrainings::AllocatorTrainings(const Job& job) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return;
  own_ = std::make_unique<const workloads::Compiled>(workloads::compile(job.workload));
  impl_ = std::make_unique<Impl>(job, *own_);
}

AllocatorTrainings::AllocatorTrainings(const Job& job, const workloads::Compiled& compiled)
    : impl_(knows_tensors(job.workload, job.system.software.memory.habits) ? std::make_unique<Impl>(job, compiled) : nullptr) {}

AllocatorTrainings::~AllocatorTrainings() = default;

void AllocatorTrainings::add_to(MemoryResult& memory) {
  if (!impl_) return;
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
