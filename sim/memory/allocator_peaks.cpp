#include "sim/memory/allocator_peaks.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/memory/caching_allocator.hpp"
#include "sim/memory/unit_tensors.hpp"
#include "workloads/operators/shard.hpp"
#include "workloads/schedule.hpp"

namespace rehearse::sim {
namespace {

using workloads::Slot;
using workloads::StageProgram;
using workloads::Workload;
using Block = CachingAllocator::Block;

constexpr int steps = 3;  // the first has no moments yet, and what the second takes beside them the third may split differently
constexpr int most_shards = 8;
// PyTorch's NCCL marks what a collective reads and writes as used by its stream (record_stream in ProcessGroupNCCL, off only with
// TORCH_NCCL_AVOID_RECORD_STREAMS): freed, it is not free before the GPU has come past the collective, and the host is ahead of the GPU.
// How far is not known: it is taken to wait for it after every second unit, which the 70B and the 405B runs of SimuMax ask for alike
// (tests/memory).
constexpr int units_ahead = 2;
constexpr int nccl_stream = 1;

struct OutOfMemory {};

// The allocator with its peaks.
class Device {
 public:
  explicit Device(double bytes) : allocator_(static_cast<std::uint64_t>(std::max(0.0, bytes))) {}

  Block* take(double bytes) {
    if (bytes < 1) return nullptr;
    Block* block = allocator_.allocate(static_cast<std::uint64_t>(bytes));
    const AllocatorState& now = allocator_.state();
    allocated_ = std::max(allocated_, now.allocated);
    reserved_ = std::max(reserved_, now.reserved);
    if (block == nullptr) throw OutOfMemory{};
    return block;
  }
  void give(Block*& block) {
    if (block != nullptr) allocator_.free(std::exchange(block, nullptr));
  }
  void communicate(Block* block) {
    if (block != nullptr) allocator_.use(block, nccl_stream);
  }
  void catch_up() { allocator_.finish(nccl_stream); }
  [[nodiscard]] AllocatorPeaks peaks() const {
    const AllocatorState& now = allocator_.state();
    return {static_cast<double>(allocated_), static_cast<double>(reserved_), now.retries, now.out_of_memory > 0};
  }

 private:
  CachingAllocator allocator_;
  std::uint64_t allocated_ = 0, reserved_ = 0;
};

// What is the same for every rank of a stage.
struct Stage {
  Stage(const Job& job, int stage, const StageProgram& of) : workload(job.workload), program(of) {
    for (const auto& chunk : program.chunks) {
      auto& made = tensors.emplace_back();
      for (const workloads::Unit& unit : chunk) {
        made.push_back(tensors_of(workload, unit));
        const std::vector<double> sizes = parameters_of(workload, unit);
        parameters.insert(parameters.end(), sizes.begin(), sizes.end());
      }
    }
    workloads::PipelineShape shape = workloads::pipeline_shape(workload);
    shape.microbatches = std::min(shape.microbatches, 2 * shape.stages);
    order = workloads::ScheduleRegistry::get(workload.schedule).order(shape, stage);
    const workloads::Shard shard = workloads::shard_of(workload);
    hidden = static_cast<double>(shard.spread_tokens * shard.hidden) * shard.element;
  }

  const Workload& workload;
  const StageProgram& program;
  std::vector<std::vector<UnitTensors>> tensors;  // [chunk][unit]
  std::vector<double> parameters;                 // of each tensor
  std::vector<Slot> order;
  double hidden = 0;  // bytes of the hidden states between two stages
};

class Training {
 public:
  Training(const Stage& stage, int shard, int shards, double bytes) : stage_(stage), device_(bytes) {
    double all = 0;
    for (const double size : stage_.parameters) all += size;
    from_ = all / shards * shard;
    to_ = all / shards * (shard + 1);
  }

  AllocatorPeaks run() {
    try {
      build();
      for (int step = 0; step < steps; ++step) {
        for (const Slot& slot : stage_.order) slot.kind == Slot::Kind::forward ? forward(slot) : backward(slot);
        device_.catch_up();  // the loss is read
        if (step == 0) moments();
      }
    } catch (const OutOfMemory&) {
    }
    return device_.peaks();
  }

 private:
  using Key = std::pair<int, int>;  // micro-batch, chunk

  // Weights; with the distributed optimizer they then move into one buffer. Gradients are one buffer, master weights a tensor each.
  void build() {
    const workloads::Precision& precision = stage_.workload.precision;
    const double weight = bytes_of(precision.weights), state = bytes_of(precision.optimizer);
    double all = 0;
    std::vector<Block*> weights;
    for (const double size : stage_.parameters) {
      weights.push_back(device_.take(size * weight));
      all += size;
    }
    const bool distributed = stage_.workload.optimizer.zero_stage > 0;
    if (distributed) device_.take(all * weight);
    device_.take(all * bytes_of(precision.gradients));
    if (distributed) std::ranges::for_each(weights, [this](Block*& block) { device_.give(block); });
    if (weight >= state) return;
    for (const double size : own_parameters()) {
      Block* copy = device_.take(size * weight);
      device_.take(size * state);
      device_.give(copy);
    }
  }

  // At the first update.
  void moments() {
    const double state = bytes_of(stage_.workload.precision.optimizer);
    for (const double size : own_parameters()) {
      device_.take(size * state);
      device_.take(size * state);
    }
  }

  // The buffer holds parameters in the order of their gradients, last ones first; the rank has one piece of it.
  [[nodiscard]] std::vector<double> own_parameters() const {
    std::vector<double> own;
    double at = 0;
    for (auto size = stage_.parameters.rbegin(); size != stage_.parameters.rend(); ++size) {
      const double part = std::min(at + *size, to_) - std::max(at, from_);
      if (part >= 1) own.push_back(part);
      at += *size;
    }
    return own;
  }

  void forward(const Slot& slot) {
    const auto& units = stage_.tensors[static_cast<std::size_t>(slot.chunk)];
    std::vector<std::vector<Block*>>& live = live_[{slot.microbatch, slot.chunk}];
    Block* hidden = starts(slot.chunk) ? nullptr : device_.take(stage_.hidden);
    for (const UnitTensors& unit : units) {
      std::vector<Block*>& blocks = live.emplace_back(static_cast<std::size_t>(unit.tensors), nullptr);
      blocks[UnitTensors::input] = hidden;
      act(unit.forward, blocks);
      hidden = std::exchange(blocks[UnitTensors::output], nullptr);
    }
    device_.give(hidden);  // sent
  }

  void backward(const Slot& slot) {
    const auto& units = stage_.tensors[static_cast<std::size_t>(slot.chunk)];
    auto live = live_.extract({slot.microbatch, slot.chunk});
    Block* gradient = ends(slot.chunk) ? nullptr : device_.take(stage_.hidden);
    for (std::size_t u = units.size(); u-- > 0;) {
      std::vector<Block*>& blocks = live.mapped()[u];
      blocks[UnitTensors::output_gradient] = gradient;
      act(units[u].backward, blocks);
      gradient = std::exchange(blocks[UnitTensors::input_gradient], nullptr);
    }
    device_.give(gradient);
  }

  [[nodiscard]] bool starts(int chunk) const {
    return stage_.program.chunks[static_cast<std::size_t>(chunk)].front().kind == workloads::UnitKind::embedding;
  }
  [[nodiscard]] bool ends(int chunk) const {
    return stage_.program.chunks[static_cast<std::size_t>(chunk)].back().kind == workloads::UnitKind::head;
  }

  void act(const std::vector<TensorStep>& tensor_steps, std::vector<Block*>& blocks) {
    if (++units_ % units_ahead == 0) device_.catch_up();
    for (const TensorStep& step : tensor_steps) {
      if (step.kind == TensorStep::Kind::hold) {
        if (held_.insert({step.tensor, nullptr}).second) held_[step.tensor] = device_.take(step.bytes);
        continue;
      }
      Block*& block = blocks[static_cast<std::size_t>(step.tensor)];
      if (step.kind == TensorStep::Kind::take) {
        block = device_.take(step.bytes);
        if (step.communicated) device_.communicate(block);
      } else {
        device_.give(block);
      }
    }
  }

  const Stage& stage_;
  Device device_;
  double from_ = 0, to_ = 0;  // of the optimizer's parameters
  int units_ = 0;
  std::map<Key, std::vector<std::vector<Block*>>> live_;
  std::map<int, Block*> held_;
};

AllocatorPeaks fullest(const Job& job, int stage, const StageProgram& program, double device_bytes) {
  const Stage what(job, stage, program);
  const int shards = job.workload.optimizer.zero_stage > 0 ? workloads::replica_sync(job.workload).shard_ranks : 1;
  const int tried = std::min(shards, most_shards);
  AllocatorPeaks most;
  for (int i = 0; i < tried; ++i) {
    const int shard = tried == 1 ? 0 : i * (shards - 1) / (tried - 1);
    const AllocatorPeaks peaks = Training(what, shard, shards, device_bytes).run();
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
  explicit Trainings(const Job& job) : job_(job), programs_(workloads::stage_programs(job.workload)) {}

  const AllocatorPeaks& peaks(int stage, double device_bytes) {
    const auto [entry, is_new] = known_.try_emplace({stage, device_bytes});
    if (is_new) entry->second = fullest(job_, stage, programs_[static_cast<std::size_t>(stage)], device_bytes);
    return entry->second;
  }

 private:
  const Job& job_;
  std::vector<StageProgram> programs_;
  std::map<std::pair<int, double>, AllocatorPeaks> known_;
};

void add_allocator(Trainings& trainings, RankMemory& rank) {
  rank.cached_bytes = std::max(0.0, trainings.peaks(rank.stage, unlimited).reserved - rank.tensor_bytes());
  rank.stuck_bytes = rank.cached_bytes;
  if (rank.fits() || rank.peak_bytes() > rank.capacity_bytes) return;
  const double left = rank.capacity_bytes - rank.at_peak[MemoryUse::framework];
  if (!trainings.peaks(rank.stage, left).out_of_memory) rank.stuck_bytes = rank.capacity_bytes - rank.peak_bytes();
}

}  // namespace

std::optional<AllocatorPeaks> allocator_peaks(const Job& job, int stage, double device_bytes) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return std::nullopt;
  return Trainings(job).peaks(stage, device_bytes);
}

void add_allocator(const Job& job, MemoryResult& memory) {
  if (!knows_tensors(job.workload, job.system.software.memory.habits)) return;
  Trainings trainings(job);
  for (RankMemory& rank : memory.ranks) add_allocator(trainings, rank);
}

}  // namespace rehearse::sim
