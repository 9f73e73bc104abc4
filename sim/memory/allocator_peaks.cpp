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

// The trainings of a job's stages, each run when it is first asked for.
class Trainings {
 public:
  // Both must outlive it.
  Trainings(const Job& job, const workloads::Compiled& compiled) : job_(job), compiled_(compiled) {}

  const AllocatorPeaks& peaks(int stage, double device_bytes) {
    const auto [entry, is_new] = known_.try_emplace({stage, device_bytes});
    if (is_new) entry->second = fullest(job_, compiled_, stage, device_bytes);
    return entry->second;
  }

 private:
  const Job& job_;
  const workloads::Compiled& compiled_;
  std::map<std::pair<int, double>, AllocatorPeaks> known_;
};

// formula_decides: the stack's own figures, which verdicts were fitted to, say what is needed.
void add_allocator(Trainings& trainings, bool formula_decides, RankMemory& rank) {
  rank.cached_bytes = trainings.peaks(rank.stage, unlimited).reserved - rank.tensor_bytes();
  rank.stuck_bytes = formula_decides ? 0 : std::max(0.0, rank.cached_bytes);
  if (rank.fits() || rank.peak_bytes() > rank.capacity_bytes) return;
  const double left = rank.capacity_bytes - rank.at_peak[MemoryUse::framework];
  if (!trainings.peaks(rank.stage, left).out_of_memory) rank.stuck_bytes = rank.capacity_bytes - rank.peak_bytes();
}

}  // namespace

std::optional<AllocatorPeaks> allocator_peaks(const Job& job, int stage, double device_bytes) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return std::nullopt;
  const workloads::Compiled compiled = workloads::compile(job.workload);
  return Trainings(job, compiled).peaks(stage, device_bytes);
}

void add_allocator(const Job& job, std::initializer_list<MemoryResult*> memories) {
  if (knows_tensors(job.workload, job.system.software.memory.habits)) add_allocator(job, workloads::compile(job.workload), memories);
}

void add_allocator(const Job& job, const workloads::Compiled& compiled, std::initializer_list<MemoryResult*> memories) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return;
  Trainings trainings(job, compiled);
  const bool formula_decides = job.system.software.memory.habits.order == workloads::TensorOrder::nanotron;
  for (MemoryResult* memory : memories) {
    for (RankMemory& rank : memory->ranks) add_allocator(trainings, formula_decides, rank);
  }
}

}  // namespace rehearse::sim
