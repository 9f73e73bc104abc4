#include "sim/memory/nearest_known.hpp"

#include <utility>

#include "sim/memory/predicted.hpp"
#include "sim/memory/unit_tensors.hpp"

namespace rehearse::sim {
namespace {

bool order_is_known(const Job& job) { return knows_tensors(job.workload, job.system.software.memory.habits); }

}  // namespace

std::unique_ptr<const NearestKnown> nearest_known(const Job& job) {
  Job nearest = job;
  workloads::Model& model = nearest.workload.model;
  model.post_norms = false;
  model.mtp = 0;
  if (model.moe) model.biases = model.clamps_gate = false;
  if (!order_is_known(nearest)) model.qk_norm = false;  // which Megatron-Core's order has
  if (!order_is_known(nearest)) return nullptr;
  workloads::Compiled compiled = workloads::compile(nearest.workload);
  MemoryResult memory = predicted_memory(nearest, compiled);
  return std::make_unique<const NearestKnown>(NearestKnown{std::move(nearest), std::move(compiled), std::move(memory)});
}

}  // namespace rehearse::sim
