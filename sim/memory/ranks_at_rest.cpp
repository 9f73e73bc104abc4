#include "sim/memory/ranks_at_rest.hpp"

#include "sim/memory/nccl_buffers.hpp"

namespace rehearse::sim {
namespace {

// Assumption: when memory runs short the allocator gives back the segments that are free as a whole, about half of its cache. The published
// runs of up to 75 GiB on 80 GiB fit with it, and those that ran out of memory do not (tests/memory).
constexpr double stuck_share = 0.5;

}  // namespace

double usable_bytes(const Gpu& gpu) { return gpu.memory_bytes - gpu.driver_bytes; }

double framework_bytes(const System& system, const workloads::Workload& workload) {
  return system.software.memory.context_bytes + communicators_bytes(system, workload);
}

RankAtRest::RankAtRest(const System& system, double framework_bytes, const workloads::StaticMemory& tensors)
    : system_(system), tensors_(tensors) {
  always_[MemoryUse::weights] = tensors.weights;
  always_[MemoryUse::gradients] = tensors.gradients;
  always_[MemoryUse::optimizer] = tensors.optimizer;
  always_[MemoryUse::temporary] = tensors.temporary;
  always_[MemoryUse::framework] = framework_bytes;
}

RankMemory RankAtRest::rank() const {
  RankMemory memory;
  memory.at_peak = always_;
  memory.capacity_bytes = usable_bytes(system_.gpu);
  memory.operation = "start";
  return memory;
}

void RankAtRest::raise_to_update(RankMemory& memory) const {
  if (tensors_.update == 0) return;
  MemoryBytes then = always_;
  then[MemoryUse::gradients] = tensors_.gradients + tensors_.update;
  if (then.total() <= memory.peak_bytes()) return;
  memory.at_peak = then;
  memory.operation = "optimizer";
  memory.microbatch = -1;
}

void RankAtRest::add_cache(RankMemory& memory) const {
  memory.cached_bytes = system_.software.memory.fragmentation * memory.tensor_bytes();
  memory.stuck_bytes = stuck_share * memory.cached_bytes;
  // A flat buffer fits into nothing that a step gave back; roots of moments, tensor by tensor, do, and leave room for what comes.
  if (!system_.software.memory.habits.foreach_update) memory.cached_bytes += tensors_.update;
}

RanksAtRest::RanksAtRest(const System& system, const workloads::Workload& workload, const workloads::ReplicaSync& sync, double standing)
    : system_(system), workload_(workload), sync_(sync), standing_(standing), framework_bytes_(framework_bytes(system, workload)) {}

RanksAtRest::RanksAtRest(const System& system, const workloads::Workload& workload, const workloads::ReplicaSync& sync)
    : RanksAtRest(system, workload, sync, workloads::standing_bytes(workload, system.software.memory.habits)) {}

RankAtRest RanksAtRest::of(const workloads::Parameters& parameters) const {
  return {system_, framework_bytes_, workloads::static_memory(workload_, system_.software.memory.habits, sync_, standing_, parameters)};
}

}  // namespace rehearse::sim
